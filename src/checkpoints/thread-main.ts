/** Program of the thread in which engines work: handles the messages of `engine-thread.ts`, those of a tree in their order. */
import { parentPort } from 'node:worker_threads';
import type { ThreadReply, ThreadRequest } from './engine-thread.ts';
import { CheckpointError } from './errors.ts';
import { LocalEngines } from './local-engines.ts';

const engines = new LocalEngines();

async function answer(request: ThreadRequest): Promise<ThreadReply> {
  const { id } = request;
  try {
    const isCall = request.kind === 'call';
    const result = await (isCall
      ? engines.call(request.place, request.name, request.args)
      : engines.release(request.treeId));
    return { id, result };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { id, error: { message, isExpected: error instanceof CheckpointError } };
  }
}

parentPort?.on('message', (request: ThreadRequest) => {
  void answer(request).then((reply) => parentPort?.postMessage(reply));
});
