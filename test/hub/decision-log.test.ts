import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { DecisionLog } from '../../src/hub/inbox/decision-log.ts';
import { createLogger } from '../../src/log/index.ts';
import type { InboxHistoryEntry } from '../../src/protocol/index.ts';

const entry = (requestId: string): InboxHistoryEntry => ({
  ...{ at: '2026-11-28T00:00:00.000Z', workspaceId: 'w', workspacePath: '/w', requestId, threadId: 't' },
  ...{ tool: 'Exec', operation: 'run', target: 'ls', decision: 'accept', decidedBy: 'api', reason: 'answered' },
  ...{ token: 'hub', remoteAddress: '127.0.0.1' },
});

t.test('a decision is recorded for its owner only, also right after the state directory was removed', async (t) => {
  const directory = join(t.testdir(), 'hub');
  const warnings: string[] = [];
  const logger = createLogger({ name: 'test', stream: { write: (text) => warnings.push(text) } });
  const log = new DecisionLog(directory, logger);
  const ids = async () => (await log.read(9)).map(({ requestId }) => requestId);
  for (const requestId of ['a', 'b']) log.add(entry(requestId));
  t.same(await ids(), ['b', 'a'], 'positive control: the newest comes first');
  rmSync(directory, { recursive: true });
  log.add(entry('c'));
  t.same([await ids(), warnings], [['c'], []]);
  const file = join(directory, 'inbox.jsonl');
  t.same([statSync(directory).mode & 0o777, statSync(file).mode & 0o777], [0o700, 0o600]);
  rmSync(file);
  log.add(entry('d'));
  t.same(await ids(), ['d']);
  t.notOk(existsSync(`${file}.1`) || readFileSync(file, 'utf8').includes('"c"'));
});
