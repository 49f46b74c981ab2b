import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { levels, loadedBy, type Program, programs } from '../../scripts/architecture-docs.ts';
import { allowed } from '../../scripts/check-imports.ts';
import { root } from '../../scripts/toolchain.mjs';
import { commands } from '../../src/cli/commands.ts';

const program = (name: string): Program => {
  const found = programs.find((each) => each.name === name);
  if (!found) throw new Error(`no program ${name}`);
  return found;
};
const roomsOf = (name: string): readonly string[] => {
  const { atStart, onFirstUse } = loadedBy(program(name));
  return [...atStart, ...onFirstUse];
};

t.test('each command that serves in the foreground is listed as a program', async (t) => {
  const starts = programs.map(({ start }) => start).join('\n');
  for (const { name } of commands.filter(({ servesForeground }) => servesForeground === true)) {
    t.match(starts, `${name}\``, name);
  }
});

t.test('each entry file of a program exists', async (t) => {
  for (const { name, entries } of programs) {
    for (const entry of entries) t.ok(existsSync(join(root, entry)), `${name}: ${entry}`);
  }
});

t.test('a program loads the rooms of its task only', async (t) => {
  t.strictSame(roomsOf('log redactor'), ['lib', 'supervise']);
  t.notOk(
    roomsOf('SDK').some((room) => ['hub', 'appserver', 'agent', 'http', 'cli'].includes(room)),
    'SDK',
  );
  t.notOk(
    loadedBy(program('Hub')).atStart.includes('agent'),
    'the Hub runs no turn: it reads lists of threads on request',
  );
  t.notOk(
    loadedBy(program('review backend')).atStart.some((room) => ['agent', 'appserver', 'hub'].includes(room)),
    'review backend: only its demo has an agent server',
  );
  t.notOk(
    roomsOf('page').some((room) => ['http', 'hub', 'agent'].includes(room)),
    'page',
  );
  t.notOk(loadedBy(program('page')).atStart.includes('machines'), 'its machine comes with the view that runs it');
  t.ok(roomsOf('agent server').includes('mcp'), 'an import() counts');
  t.notOk(loadedBy(program('agent server')).atStart.includes('mcp'), 'on first use');
});

t.test('each room is above every room that it may import', async (t) => {
  const of = levels();
  for (const [room, rooms] of Object.entries(allowed)) {
    for (const other of rooms) t.ok((of.get(other) ?? 0) < (of.get(room) ?? 0), `${room} is above ${other}`);
  }
});
