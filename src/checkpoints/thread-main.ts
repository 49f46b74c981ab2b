/** Program of the thread in which engines work: handles the messages of `engine-thread.ts`, those of a tree in their order. */
import { parentPort } from 'node:worker_threads';
import type { ThreadReply, ThreadRequest } from './engine-thread.ts';
import { CheckpointError } from './errors.ts';
import { LocalEngines } from './local-engines.ts';
import { storedDiff } from './stored-diff.ts';

const engines = new LocalEngines();

async function answer(request: ThreadRequest): Promise<ThreadReply> {
  const { id } = request;
  try {
    return { id, result: await resultOf(request) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { id, error: { message, isExpected: error instanceof CheckpointError } };
  }
}

function resultOf(request: ThreadRequest): Promise<unknown> {
  switch (request.kind) {
    case 'call':
      return engines.call(request.place, request.name, request.args);
    case 'release':
      return engines.release(request.treeId);
    case 'storedDiff':
      return storedDiff(request, request.request);
  }
}

parentPort?.on('message', (request: ThreadRequest) => {
  void answer(request).then((reply) => parentPort?.postMessage(reply));
});
