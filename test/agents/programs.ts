import { homedir } from 'node:os';
import { join } from 'node:path';

/** Cache of this user with the packages of the agents. */
export const agentCache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'oratorio', 'agents');

/** Directory of the agents' programs. */
export const agentPrograms = join(agentCache, 'node_modules', '.bin');
