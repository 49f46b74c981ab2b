/** Most connections that the kernel queues for `accept`: the default of Node. */
const backlog = 511;

/**
 * Resolves when the queue of a listener is empty. The kernel resets the connections that are still in it when the listener is closed.
 *
 * @param accepted number of accepted connections until now: `node:net` accepts one in each turn of the event loop
 */
export async function acceptQueued(accepted: () => number): Promise<void> {
  let before = -1;
  // The limit stops the loop when a client keeps connecting.
  for (let turn = 0; before !== accepted() && turn < backlog; turn += 1) {
    before = accepted();
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  }
}
