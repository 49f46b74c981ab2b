/** First file of the built agent server: runs `program.cjs`, which the build makes of `main.ts`, from its compiled code. */
import { join } from 'node:path';
import { runCompiled } from './compiled-program.ts';

runCompiled(join(import.meta.dirname, 'program.cjs'));
