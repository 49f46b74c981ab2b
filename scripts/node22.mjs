/** `node scripts/node22.mjs FILE [ARGS…]`: runs a TypeScript or JavaScript file of this checkout under the pinned Node 22. */
import { ensureDependencies, node22, run, toolEnvironment } from './toolchain.mjs';

ensureDependencies();
run(node22(), ['--disable-warning=ExperimentalWarning', ...process.argv.slice(2)], { env: toolEnvironment() });
