import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { FileError } from '../../../src/agent/tools/files/errors.ts';
import { openFile } from '../../../src/agent/tools/files/handles.ts';
import { createTextReader } from '../../../src/agent/tools/files/local-text.ts';

/** Makes `swap` a directory and a symlink to the outside by turns, as fast as it can. */
const swapping = `
  const { renameSync, symlinkSync, unlinkSync } = require('node:fs');
  for (let turns = 0; ; turns += 1) {
    renameSync('swap', 'kept');
    symlinkSync('../outside', 'swap');
    unlinkSync('swap');
    renameSync('kept', 'swap');
    if (turns === 10) console.log('swapping');
  }`;

t.test('a file whose directory is exchanged while it is opened is the one that was asked for, or none', async (t) => {
  const root = realpathSync(t.testdir({ outside: { 'file.txt': 'outside' } }));
  const inside = join(root, 'inside');
  mkdirSync(join(inside, 'swap'), { recursive: true });
  writeFileSync(join(inside, 'swap', 'file.txt'), 'inside');
  const child = spawn(process.execPath, ['-e', swapping], { cwd: inside, stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  const found = new Map<string, number>();
  const count = (what: string) => found.set(what, (found.get(what) ?? 0) + 1);
  const read = createTextReader({ blockedPaths: [], protectedDirectories: [] });
  // On a busy machine the other process may not have its turn for a while: until both were seen.
  const hasSeenBoth = () => found.has('inside') && found.has('moved');
  for (let tries = 0; tries < 1_000 || (tries < 100_000 && !hasSeenBoth()); tries += 1) {
    try {
      const file = await openFile(join(inside, 'swap', 'file.txt'));
      count(String(await file.handle.readFile('utf8')));
      await file.close();
    } catch (error) {
      count(error instanceof FileError ? error.code : String((error as NodeJS.ErrnoException).code));
    }
    const text = tries % 4 === 0 ? await read.inWorkspace('swap/file.txt', inside, 100) : undefined;
    if (text?.text === 'outside') count('outside');
  }
  child.kill('SIGKILL');
  await once(child, 'close');
  t.equal(found.get('outside') ?? 0, 0);
  t.ok((found.get('inside') ?? 0) > 0);
  t.ok((found.get('moved') ?? 0) > 0, JSON.stringify([...found]));
});
