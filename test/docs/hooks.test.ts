/** The example of docs/hooks.md with the real compiler. */
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import * as v from 'valibot';
import { createBuiltinTools, Hooks, OutputFiles, userCommands } from '../../src/agent/index.ts';
import { Config } from '../../src/config/schema.ts';
import { answers, call, say, service, settings, talk } from '../agent/helpers.ts';
import { temporaryWorkspace } from '../agent/tools/run-tool.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(root, 'docs', 'hooks.md'), 'utf8');

t.test(
  'with the example of the page the model reads a type error behind its edit, and nothing when it is mended',
  async (t) => {
    const [, example = ''] = /```json\n([\s\S]*?)```/.exec(page) ?? [];
    const config = v.parse(Config, JSON.parse(example));
    const workspacePath = temporaryWorkspace(t);
    symlinkSync(join(root, 'node_modules'), join(workspacePath, 'node_modules'));
    writeFileSync(
      join(workspacePath, 'tsconfig.json'),
      '{"compilerOptions": {"strict": true, "types": []}, "files": ["a.ts"]}',
    );
    const environment = process.env;
    const common = { environment, passEnvironment: [], secrets: [] };
    const tools = createBuiltinTools({
      ...common,
      tools: config.Tools,
      blockedPaths: [],
      home: temporaryWorkspace(t),
      outputs: new OutputFiles(temporaryWorkspace(t)),
    });
    const provider = answers(
      [call('1', 'WriteFile', { path: 'a.ts', content: "export const n: number = 'one';\n" })],
      [call('2', 'EditFile', { path: 'a.ts', oldText: "'one'", newText: '1' })],
      [say('done')],
    );
    const { runtime } = service(provider, {
      workspacePath,
      tools: () => tools,
      settings: { ...settings, approvalPolicy: 'autoApprove' },
      hooks: new Hooks(config.Hooks, userCommands(common), workspacePath),
    });
    const { turn } = await talk(runtime, runtime.threads.start({}).thread.id, 'write it');
    const results = turn.items.flatMap((item) => (item.type === 'toolResult' ? [item] : []));
    t.match(results, [{ outcome: 'completed' }, { outcome: 'completed' }]);
    t.match(results[0]?.text, /\[hook of the user\][\s\S]*a\.ts\(1,14\): error TS2322/);
    t.notMatch(results[1]?.text, 'hook of the user');
  },
);
