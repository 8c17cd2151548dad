/* Events: how a program is told. */
#include <signal.h>
