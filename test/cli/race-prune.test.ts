/** `oratorio race --prune` with an agent server that ends between any two of its steps. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { CommandContext } from '../../src/cli/command.ts';
import { namePrefix, prune } from '../../src/cli/race/prune.ts';
import type { AppServerClient } from '../../src/client/index.ts';
import { forksDirectories } from '../../src/config/index.ts';

for (const isRunning of [false, true]) {
  const when = isRunning ? 'a running attempt ends before' : 'a server that is killed leaves a conversation for';
  t.test(`${when} each directory that --prune deletes`, async (t) => {
    const workspace = join(t.testdir({ site: {} }), 'site');
    const [forks = ''] = forksDirectories(workspace);
    const directory = join(forks, 'site-1');
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, 'file'), '');
    const thread = {
      id: 'thread_a',
      displayName: `${namePrefix}1`,
      config: { workspaceOverride: directory, race: {} },
      runtime: { running: isRunning },
    };
    const threads = new Set([thread]);
    let wasThere: boolean | undefined;
    let isKilled = true;
    const server = {
      request: async (method: string) => {
        if (method === 'thread/list') return { data: [...threads] };
        wasThere = existsSync(directory);
        if (isKilled) throw new Error('the connection was closed');
        threads.clear();
        return {};
      },
    } as unknown as AppServerClient;
    const lines: string[] = [];
    const context = {
      output: { json: false, line: (line: string) => lines.push(line) },
      ...{ env: process.env, options: {}, signal: new AbortController().signal },
    } as unknown as CommandContext;
    await t.rejects(prune(context, server, workspace), { message: 'the connection was closed' });
    t.equal(wasThere, isRunning);
    t.equal(threads.size, 1, 'a later call finds the attempt');
    isKilled = false;
    await prune(context, server, workspace);
    t.strictSame([threads.size, existsSync(directory)], [0, false]);
    t.strictSame(lines, ['Deleted 1 attempt.']);
  });
}
