/* What exported programs need of the target's header. The values are those of one release: release.h is made from
   the tables of modes, classes and events when a test runs. */
#include <stdint.h>
#include "release.h"

typedef uint32_t __traceentry;

typedef struct {
    __traceentry header;
    uint32_t *data_array;
    uint32_t el_num;
    void *area;
    uint32_t feature_mask;
    uint32_t feature[2];
} event_data_t;

#define _NTO_TRACE_FMPID 1u
#define _NTO_TRACE_FMTID 2u
#define _NTO_TRACE_FIPID 0
#define _NTO_TRACE_FITID 1

extern int TraceEvent(int mode, ...);
