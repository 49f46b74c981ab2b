/** Warns when the model catalogue is old: prices and limits change. It never fails, as its outcome depends on the day. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './toolchain.mjs';

const maxAgeDays = 90;
const file = 'src/agent/providers/catalogue/catalogue.generated.json';
const { released } = JSON.parse(readFileSync(join(root, file), 'utf8')) as { readonly released: string };
const ageDays = Math.floor((Date.now() - Date.parse(released)) / 86_400_000);
console.log(`The model catalogue is of ${released}: ${ageDays} days old.`);
if (ageDays > maxAgeDays) console.warn(`! It is older than ${maxAgeDays} days. To renew it: npm run models`);
