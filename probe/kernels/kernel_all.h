/* The device kernels in the order in which they are joined; see kernel_prologue.h. For the host,
 * where they are compiled as C11; the other languages get the text of the parts, without this file.
 */
#include "probe/kernels/kernel_prologue.h"
#include "probe/kernels/kernel_stream.h"
#include "probe/kernels/kernel_rows.h"
#include "probe/kernels/kernel_gemv.h"
#include "probe/kernels/kernel_matrix.h"
#include "probe/kernels/kernel_gemm.h"
