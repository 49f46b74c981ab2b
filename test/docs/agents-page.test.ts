import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';

t.test('each path and npm script that AGENTS.md names exists', async (t) => {
  const text = readFileSync(join(root, 'AGENTS.md'), 'utf8');
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object };
  const spans = [...text.matchAll(/`([^`\n]+)`/g)].map(([, span = '']) => span);
  const commands = spans.filter((span) => span.startsWith('npm '));
  const words = commands.flatMap((command) => command.split(' '));
  const paths = [...spans, ...words].filter((span) =>
    /^(?:machines|src|test|docs|scripts|bench|[A-Z]+\.md)(?:\/\S*)?$/.test(span),
  );
  t.ok(commands.length > 5 && paths.length > 15, `${commands.length} commands and ${paths.length} paths`);
  for (const path of paths) t.ok(existsSync(join(root, path)), path);
  for (const command of commands) {
    const [, first = '', second = ''] = command.split(' ');
    t.ok((first === 'run' ? second : first) in scripts, command);
  }
  t.ok(text.split('\n').length <= 61, 'at most 60 lines');
});
