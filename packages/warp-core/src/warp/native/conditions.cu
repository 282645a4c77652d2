// The values that conditional nodes of graphs look at. Compiled for a device when a graph first has such a node, since only
// compilers from CUDA 12.3 on know the function: the driver provides it, like printf, when it loads the code.

extern "C" __device__ void cudaGraphSetConditional(unsigned long long condition, unsigned value);

namespace wp {

struct condition_arguments {
    uint64 condition;
    const int* value;
    int64 is_negated;
};

}  // namespace wp

extern "C" __global__ void wp_set_condition(const __grid_constant__ wp_launch launch, const __grid_constant__ wp::condition_arguments args) {
    cudaGraphSetConditional(args.condition, (*args.value != 0) != (args.is_negated != 0));
}
