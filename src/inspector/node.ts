import { fileURLToPath } from 'node:url';
import { wireOf } from '../inspect/index.ts';
import type { Inspector, NodeInspectorOptions } from './options.ts';
import { createOutlet } from './outlet.ts';
import { randomId } from './random-id.ts';
import { serveInspector } from './server.ts';
import { createWatch } from './watch.ts';

/** Timers that do not keep the program running. */
const clock = {
  now: () => Date.now(),
  setTimeout: (callback: () => void, milliseconds: number): unknown => setTimeout(callback, milliseconds).unref(),
  clearTimeout: (timer: unknown) => clearTimeout(timer as NodeJS.Timeout),
};

/**
 * Records every actor that is created with `inspect`, and serves the records to the user's browser on a loopback address. Never
 * prevents the program from ending.
 *
 * @example
 * const inspector = createInspector();
 * createActor(machine, { inspect: inspector.inspect }).start();
 * console.log(await inspector.url);
 */
export function createInspector(options: NodeInspectorOptions = {}): Inspector {
  const watch = createWatch(options, clock);
  const outlet = createOutlet(watch, wireOf, clock);
  const token = randomId();
  const directory = fileURLToPath(new URL('./page', import.meta.url));
  const server = serveInspector({ outlet, directory, token, port: options.port ?? 0 });
  const url = server.origin.then((origin) => `${origin}/#token=${token}`);
  url.catch(() => {});
  return {
    inspect: watch.inspect,
    url,
    close: () => {
      outlet.close();
      return server.close();
    },
  };
}
