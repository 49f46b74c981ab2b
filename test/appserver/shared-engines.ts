/** Checkpoints of all servers in this process, by one thread: to begin one for each server costs as much as a start of Node. */
import { EngineThread } from '../../src/checkpoints/engine-thread.ts';
import type { Engines } from '../../src/checkpoints/index.ts';

const thread = new EngineThread({ isKept: true });
let servers = 0;

/** Engines of one server, in the shared thread: two servers may have a tree of the same files. */
export function enginesOfServer(): Engines {
  servers += 1;
  const server = servers;
  const idOf = (treeId: string) => `${server}/${treeId}`;
  return {
    prepare: () => thread.prepare(),
    call: (place, name, args) => thread.call({ ...place, treeId: idOf(place.treeId) }, name, args),
    release: (treeId) => thread.release(idOf(treeId)),
  };
}
