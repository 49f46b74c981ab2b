/**
 * First module of the built process: keeps compiled code between starts, then runs `main.ts`. A third of what a start costs is
 * compiling, and somebody waits for it. Where the directory cannot be used, Node compiles as ever.
 */
import { existsSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

// Not `homeDirectory`: what is loaded before the cache is there is compiled every time.
const home = process.env['ORATORIO_HOME'] || join(homedir(), '.oratorio');
if (existsSync(home)) enableCompileCache(join(home, 'cache'));

// No top-level await: the build makes CommonJS of this file (docs/decisions.md).
void import('./main.ts');
