import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { devcontainerImage } from '../../src/places/index.ts';
import { temporaryDirectory } from '../hub/harness.ts';

function workspaceWith(t: Test, text: string, name = '.devcontainer/devcontainer.json'): string {
  const workspace = temporaryDirectory(t);
  mkdirSync(join(workspace, '.devcontainer'));
  writeFileSync(join(workspace, name), text);
  return workspace;
}

t.test('only the image of a devcontainer.json with comments is read', async (t) => {
  const text = '{\n  // tools\n  "image": "mcr.example.org/base:1",\n  "privileged": true,\n}';
  t.equal(devcontainerImage(workspaceWith(t, text)), 'mcr.example.org/base:1');
  t.equal(devcontainerImage(workspaceWith(t, '{"image": "b"}', '.devcontainer.json')), 'b');
});

t.test('a file without a usable image yields no image', async (t) => {
  for (const text of [
    '',
    'null',
    '[]',
    '{"build": {}}',
    '{"image": 1}',
    '{"image": "--privileged"}',
    '{"image": "a b"}',
  ])
    t.equal(devcontainerImage(workspaceWith(t, text)), undefined, text);
  t.equal(devcontainerImage(temporaryDirectory(t)), undefined);
  const linked = temporaryDirectory(t);
  symlinkSync(
    join(workspaceWith(t, '{"image": "b"}', '.devcontainer.json'), '.devcontainer.json'),
    join(linked, '.devcontainer.json'),
  );
  t.equal(devcontainerImage(linked), undefined, 'a link is not followed');
});
