/** Every public function and class of `oratorio/client`, and every method of its clients, has an example. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';

const room = join(import.meta.dirname, '../../src/client');
const read = (file: string): string => readFileSync(join(room, file), 'utf8');

/** Values that `index.ts` exports: `type` exports are left out. */
const exported = new Set(
  [...read('index.ts').matchAll(/^export \{([^}]*)\}/gm)].flatMap(([, names = '']) =>
    names
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '' && !name.startsWith('type ')),
  ),
);

/** A function or class, or a method of the class above it, with the comment before it. */
const declaration =
  /(\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n)?^(?:(?:export )?(?:(?:async )?function\*? |class |const )(\w+)| {2}(?:static )?(?:async )?\*?(\w+)(?:<.*>)?\((?:.*\{)?$)/gm;

function declarationsOf(file: string): { readonly name: string; readonly examples: number }[] {
  let owner = '';
  return [...read(file).matchAll(declaration)].flatMap(([, comment = '', top, method]) => {
    if (top !== undefined) owner = top;
    const name = top ?? `${owner}.${method}`;
    const isMethod = method !== undefined && owner.endsWith('Client') && method !== 'constructor';
    const isPublic = exported.has(owner) && (method === undefined || isMethod);
    return isPublic ? [{ name, examples: comment.split('@example').length - 1 }] : [];
  });
}

t.test('every public function and class, and every method of a client, has exactly one @example', (t) => {
  const found = globSync(['*.ts', '../rpc/*.ts'], { cwd: room }).flatMap(declarationsOf);
  t.same(
    [...exported].filter((name) => !found.some((each) => each.name === name)),
    [],
  );
  t.same(
    found.filter(({ examples }) => examples !== 1),
    [],
  );
  t.end();
});
