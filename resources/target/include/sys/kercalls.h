/* Numbers of kernel calls: __KER_MSG_SENDV and so on. */
#include "release.h"
