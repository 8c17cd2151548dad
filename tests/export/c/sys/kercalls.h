#include "release.h"
