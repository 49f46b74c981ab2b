import { join } from 'node:path';
import { root } from './toolchain.mjs';

/** Forms of packages that can be bundled: what Node loads of this one hides its `require` from a bundler. */
export const bundledForms = { 'jsonc-parser': join(root, 'node_modules/jsonc-parser/lib/esm/main.js') };
