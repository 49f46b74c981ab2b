/** Environment of an agent server: variables that it needs, and none that a cloned repository names. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { agentServerFixture, makeWorkspace, startTestHub, temporaryDirectory } from './harness.ts';

const agentServer = agentServerFixture('well-behaved.ts');
const env = { STOLEN_KEY: 'a-secret-of-the-user', ALLOWED_KEY: 'meant-for-agents' };

t.test('a workspace configuration cannot use a variable of the user', async (t) => {
  const hub = await startTestHub(t, { agentServer, env });
  const workspace = makeWorkspace(t, {
    EndPoint: 'http://127.0.0.1:9/${STOLEN_KEY}',
    Supervision: { PassEnvironment: ['STOLEN_KEY'] },
  });
  const answer = await hub.call('POST', '/v1/appservers/ensure', { workspacePath: workspace });
  t.match(answer, {
    status: 500,
    body: { error: { code: 'invalidConfig', message: /STOLEN_KEY.*PassEnvironment of your own config\.json/ } },
  });
  t.notOk(JSON.stringify(answer.body).includes(env.STOLEN_KEY));
});

t.test(
  'the agent server gets the variables listed by the user, and no others',
  { skip: process.platform === 'linux' ? false : 'reads /proc' },
  async (t) => {
    const home = temporaryDirectory(t);
    writeFileSync(join(home, 'config.json'), JSON.stringify({ Supervision: { PassEnvironment: ['ALLOWED_KEY'] } }));
    const hub = await startTestHub(t, { home, agentServer, env });
    const { pid } = await hub.ensure(makeWorkspace(t, { ApiKey: '${ALLOWED_KEY}', EndPoint: 'http://127.0.0.1:9' }));
    const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
    t.ok(environment.includes('ALLOWED_KEY=meant-for-agents'));
    t.notOk(environment.some((entry) => entry.includes(env.STOLEN_KEY)));
    t.notOk(environment.some((entry) => entry.includes(hub.lock.token)));
  },
);
