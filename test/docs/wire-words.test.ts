/** Documentation of the wire names that clients need: types of traces, kinds of notices and events. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import * as v from 'valibot';
import { root } from '../../scripts/toolchain.mjs';
import { Config } from '../../src/config/index.ts';
import { traceTypes } from '../../src/protocol/index.ts';

const texts = (pattern: string): string =>
  globSync(pattern, { cwd: root })
    .map((file) => readFileSync(join(root, file), 'utf8'))
    .join('\n');
const documents = texts('docs/*.md');
const isDocumented = (word: string): boolean => documents.includes(`\`${word}\``);

/** Patterns of the code that sets the kind of a notice or an event. */
const kindsIn = [
  /(?:addNotice|discard|publish)\(\s*turn,\s*'(\w+)'/g,
  /type: 'systemNotice',\s*kind: '(\w+)'/g,
  /method: 'system\/event',\s*params: \{[^{}]*kind: '(\w+)'/g,
  /const \w+Notice = '(\w+)'/g,
  /report\('(\w+)', /g,
];

t.test('each kind of notice and event that the runtime writes is documented', (t) => {
  const sources = texts('src/agent/**/*.ts');
  const kinds = new Set(kindsIn.flatMap((pattern) => [...sources.matchAll(pattern)].map(([, kind = '']) => kind)));
  for (const known of ['requestRepeated', 'modelReplaced', 'callLimitReached', 'checkpointFailed', 'filesRestored'])
    t.ok(kinds.has(known), `control: ${known} is found in the sources`);
  t.same(
    [...kinds].filter((kind) => !isDocumented(kind)),
    [],
  );
  t.notOk(isDocumented('noSuchKind'), 'control');
  t.end();
});

t.test('the default port of the Hub and the coverage of a saved rule for scripts are documented', (t) => {
  const { Hub } = v.parse(Config, {});
  t.match(documents, `| \`Port\` | integer | optional, default \`${Hub.Port}\` | Listen port of the Hub`);
  t.match(documents, /A saved rule names the command, not the content: it also covers later versions of the script/);
  t.end();
});

t.test('each type of trace event is documented', (t) => {
  t.ok(traceTypes.includes('model.replaced'), 'control');
  t.same(
    traceTypes.filter((type) => !isDocumented(type)),
    [],
  );
  t.end();
});
