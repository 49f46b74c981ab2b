/**
 * First file of the built command line tool: runs `program.cjs`, which the build makes of `main.ts`, from its compiled code. Each
 * command has its own compiled code, because commands share little of it.
 */
import { join } from 'node:path';
import { runCompiled } from '../lib/index.ts';

const [word = ''] = process.argv.slice(2);
runCompiled(join(import.meta.dirname, 'program.cjs'), `cli-${/^[a-z][a-z-]{0,30}$/.test(word) ? word : 'other'}`);
