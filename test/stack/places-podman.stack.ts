/** The tests of places on Podman as root. */
import { join } from 'node:path';
import { killEngine } from './engine.ts';
import { makePodman } from './podman.ts';
import { variable } from './variables.ts';

const directory = join(variable('directory'), 'podman');
await makePodman({ directory });
process.env['DOCKER_HOST'] = `unix://${join(directory, 'engine.sock')}`;
process.once('exit', () => killEngine(directory));
await import('./places.stack.ts');
