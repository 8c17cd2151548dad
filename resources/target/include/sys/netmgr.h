/* The simulated target is the only node. */
#include <sys/neutrino.h>
