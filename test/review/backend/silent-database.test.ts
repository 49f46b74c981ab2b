/** The whole backend behind a proxy whose connections to PostgreSQL fall silent. */
import { createHmac } from 'node:crypto';
import t from 'tap';
import { startPostgres } from '../postgres.ts';
import { SilentProxy } from '../silent-proxy.ts';
import { place, start } from './process.ts';

const secret = 'a secret of the webhook';

t.test('a backend continues after its connections fell silent, and ends in time when the server is gone', async (t) => {
  const postgres = await startPostgres();
  t.teardown(() => postgres.stop());
  const proxy = await SilentProxy.start(t, postgres.socket);
  const here = place(t);
  here.configure({ GitHub: { WebhookSecret: secret, Repositories: ['octo/hello'] } });
  const backend = start(t, here, [], {
    Oratorio__Storage__ConnectionString: proxy.url(await postgres.database()),
  });
  const { url } = await backend.ready;
  let count = 0;
  const deliver = async () => {
    count += 1;
    const body = JSON.stringify({
      action: 'opened',
      repository: { full_name: 'octo/hello', html_url: 'https://github.com/octo/hello' },
      pull_request: { number: count },
      sender: { login: 'alice' },
    });
    const answer = await fetch(`${url}/api/v1/sources/github/webhook`, {
      method: 'POST',
      body,
      headers: {
        ...{ 'content-type': 'application/json', 'x-github-event': 'pull_request', 'x-github-delivery': `d-${count}` },
        'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
      },
    });
    return answer.status;
  };
  const health = async () => {
    const answer = await fetch(`${url}/health`);
    return { ...((await answer.json()) as { readonly reason?: string }), status: answer.status };
  };
  const until = async (status: number) => {
    while ((await health()).status !== status) await new Promise((resolve) => setTimeout(resolve, 50));
  };
  t.equal(await deliver(), 202);
  t.match(await health(), { status: 200 });

  proxy.swallow();
  await until(503);
  await until(200);
  while ((await deliver()) !== 202) await new Promise((resolve) => setTimeout(resolve, 50));

  proxy.vanish();
  await until(503);
  t.match(await health(), { reason: /database|claimed|queued/ });
  t.equal((await fetch(`${url}/health/live`)).status, 200);
  backend.child.kill('SIGTERM');
  await backend.ended;
  await t.rejects(fetch(`${url}/health`), 'the listener is closed');
  t.match(backend.stderr(), /the database is unavailable; work waits/);
  t.notMatch(backend.stderr(), /bug/);
});
