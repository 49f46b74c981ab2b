/** The server's side of the proof, over real sockets. */
import { createHmac, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { proveServer, ServerNotProvenError, type UnprovenReason } from '../../src/client/index.ts';
import { createProver, type HttpServer, keyIdOf, ownAuthorities, proofOf } from '../../src/http/index.ts';
import { exchangeMessage, type ProofAnswer, proofPaths } from '../../src/protocol/index.ts';
import { anyCharacter } from '../any-character.ts';
import { stealPort } from '../port-thief.ts';
import { type Adapter, exchange, patienceMs, rawRequest, start } from './support.ts';

const token = 'a-token-of-forty-three-characters-0123456789';
const earlier = 'the-token-of-the-start-before-0123456789abc';
const nonce = () => randomBytes(32).toString('base64url');

async function serve(t: Test, adapter: Adapter) {
  let server: HttpServer | undefined;
  const prover = createProver({
    role: 'dashboard',
    find: (key) =>
      key === keyIdOf(token)
        ? { token, use: 'token' }
        : key === keyIdOf(earlier)
          ? { token: earlier, use: 'exchange' }
          : undefined,
    isOwn: ownAuthorities({ bound: () => server?.bound, names: ['Box.Example'], published: ['127.0.0.1:9'] }),
  });
  const running = await start(t, adapter, {
    hostAllowed: () => true,
    routes: [{ method: 'GET', path: proofPaths.dashboard, handler: prover.handler }],
  });
  server = running.server;
  const ask = async (query: Record<string, string>, host = `127.0.0.1:${running.port}`) => {
    const path = `${proofPaths.dashboard}?${new URLSearchParams(query)}`;
    const { status, body } = await exchange(running.port, rawRequest('GET', path, { Host: host }));
    return { status, body: JSON.parse(body) as ProofAnswer & { error: { code: string } } };
  };
  return { ...running, prover, ask, authority: `127.0.0.1:${running.port}` };
}

const refused = (run: Promise<void>): Promise<UnprovenReason | undefined> =>
  run.then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof ServerNotProvenError) return error.reason;
      throw error;
    },
  );

for (const adapter of ['uws', 'node'] satisfies Adapter[]) {
  t.test(`a server proves that it holds the token named by the client (${adapter})`, async (t) => {
    const { ask, authority, url } = await serve(t, adapter);
    const first = nonce();
    const answer = await ask({ nonce: first, key: keyIdOf(token) });
    t.match(answer, { status: 200, body: { use: 'token' } });
    const message = ['oratorio-proof', 'dashboard', first, authority].join('\n');
    t.equal(answer.body.proof, createHmac('sha256', token).update(message).digest('base64url'), 'as documented');
    const second = await ask({ nonce: nonce(), key: keyIdOf(token) });
    t.not(second.body.proof, answer.body.proof, 'an answer is worthless for another nonce');
    t.match(await ask({ nonce: nonce(), key: keyIdOf(earlier) }), { status: 200, body: { use: 'exchange' } });
    t.notMatch(JSON.stringify([answer, second]), token);

    t.equal(await refused(proveServer({ timeoutMs: patienceMs, role: 'dashboard', url, token })), undefined);
    t.equal(
      await refused(proveServer({ timeoutMs: patienceMs, role: 'dashboard', url, token: 'x'.repeat(43) })),
      'unknownToken',
    );
    t.equal(
      await refused(proveServer({ timeoutMs: patienceMs, role: 'dashboard', url, token: earlier })),
      'wrongProof',
      'not for requests',
    );
    t.equal(await refused(proveServer({ timeoutMs: patienceMs, role: 'dashboard', url, token: 'short' })), 'weakToken');
    t.equal(await refused(proveServer({ timeoutMs: patienceMs, role: 'hub', url, token })), 'noRoute');
  });

  t.test(`a malformed challenge gets 400, and the server keeps serving (${adapter})`, async (t) => {
    const { ask, bugs } = await serve(t, adapter);
    const key = keyIdOf(token);
    for (const bad of ['', 'short', 'x'.repeat(21), 'x'.repeat(87), 'ü'.repeat(30), 'a b'.repeat(10), `${nonce()}\n`]) {
      t.match(await ask({ nonce: bad, key }), { status: 400, body: { error: { code: 'invalidRequest' } } }, bad);
      t.match(await ask({ nonce: nonce(), key: bad }), { status: 400 }, bad);
    }
    t.match(await ask({ nonce: nonce() }), { status: 400 });
    t.match(await ask({ nonce: nonce(), key: 'x'.repeat(22) }), {
      status: 401,
      body: { error: { code: 'unauthorized' } },
    });
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: anyCharacter, maxLength: 200 }),
        fc.string({ maxLength: 60 }),
        async (one, other) => {
          const { status, body } = await ask({ nonce: one, key: other });
          return (status === 400 || status === 401) && !JSON.stringify(body).includes(token);
        },
      ),
      { numRuns: 200 },
    );
    t.same(bugs, []);
    t.match(await ask({ nonce: nonce(), key }), { status: 200 }, 'a right one is answered as before');
  });

  t.test(`a client that is relayed from another port gets no proof (${adapter})`, async (t) => {
    const { port, url } = await serve(t, adapter);
    const thief = await stealPort({ port: 0, relayTo: port });
    t.teardown(() => thief.close());
    const stolen = `http://127.0.0.1:${thief.port}`;
    t.equal(
      await refused(proveServer({ timeoutMs: patienceMs, role: 'dashboard', url: stolen, token })),
      'otherAddress',
    );
    // The thief reports requests on its standard output, later than the answer over the network.
    await thief.until(1);
    t.equal(thief.requests.length, 1);
    t.notMatch(thief.requests[0]?.text, token);
    t.equal(
      await refused(proveServer({ timeoutMs: patienceMs, role: 'dashboard', url, token })),
      undefined,
      'directly it proves itself',
    );
  });
}

t.test('a proof is compared with the address that the client requested', async (t) => {
  // A relay that writes the address of the real server into the Host header gets a proof, of that address.
  const { ask, authority, url } = await serve(t, 'node');
  const thief = await stealPort({ port: 0, answers: {} });
  t.teardown(() => thief.close());
  const claim = { role: 'dashboard', nonce: nonce(), authority } as const;
  const { body } = await ask({ nonce: claim.nonce, key: keyIdOf(token) });
  t.equal(body.proof, proofOf(token, claim));
  t.not(body.proof, proofOf(token, { ...claim, authority: `127.0.0.1:${thief.port}` }));
  t.not(body.proof, proofOf(token, { ...claim, role: 'backend' }), 'nor does it count for another kind of server');
  t.equal(
    await refused(
      proveServer({ timeoutMs: patienceMs, role: 'dashboard', url: `http://127.0.0.1:${thief.port}`, token }),
    ),
    'wrongProof',
  );
  t.equal(await refused(proveServer({ timeoutMs: patienceMs, role: 'dashboard', url, token })), undefined);
});

t.test('an endless answer is cut', async (t) => {
  const { url } = await start(t, 'node', {
    routes: [
      {
        method: 'GET',
        path: proofPaths.dashboard,
        handler: () => ({ kind: 'bytes', status: 200, headers: [], body: 'x'.repeat(1_000_000) }),
      },
    ],
  });
  t.equal(await refused(proveServer({ timeoutMs: patienceMs, role: 'dashboard', url, token })), 'wrongProof');
});

t.test('a server proves only addresses that cannot lead to another server', async (t) => {
  const own = (host: string, names: string[] = []) =>
    ownAuthorities({ bound: () => ({ host, port: 8080 }), names, published: ['127.0.0.1:18080'] });
  const cases: [string, string[], string[], string[]][] = [
    [
      '127.0.0.1',
      [],
      ['127.0.0.1:8080', '127.0.0.1:18080'],
      ['localhost:8080', '[::1]:8080', '127.0.0.2:8080', '127.0.0.1:8081', '127.0.0.1', '192.168.1.5:8080'],
    ],
    ['localhost', [], ['localhost:8080'], ['127.0.0.1:8080', 'localhost:8081']],
    [
      '0.0.0.0',
      ['Box.Example.'],
      ['127.0.0.1:8080', '192.168.1.5:8080', 'box.example:8080', 'box.example'],
      ['localhost:8080', '[::1]:8080', 'evil.example:8080', 'box.example:8081', '1.2.3.4.5:8080'],
    ],
    ['::', [], ['[::1]:8080', '127.0.0.1:8080', 'localhost:8080'], ['box.example:8080', '[::1]:8081']],
    ['::1', [], ['[::1]:8080'], ['127.0.0.1:8080', 'localhost:8080']],
  ];
  for (const [host, names, yes, no] of cases) {
    const isOwn = own(host, names);
    t.same(
      yes.filter((each) => !isOwn(each)),
      [],
      host,
    );
    t.same(
      [...no, '', ' ', 'a:b:c', '127.0.0.1:8080:8080', '127.0.0.1:8080\n', '127.0.0.1:99999'].filter(isOwn),
      [],
      host,
    );
  }
  t.notOk(ownAuthorities({ bound: () => undefined })('127.0.0.1:8080'), 'before it listens');
});

t.test('only a holder of an earlier token can exchange it, at this process and this address', async (t) => {
  const { prover, ask, authority } = await serve(t, 'node');
  const { instance } = (await ask({ nonce: nonce(), key: keyIdOf(earlier) })).body;
  const claim = { role: 'dashboard', nonce: nonce(), authority, instance } as const;
  const sign = (secret: string, of: Parameters<typeof exchangeMessage>[0]) =>
    createHmac('sha256', secret).update(exchangeMessage(of)).digest('base64url');
  const attempt = (changes: Partial<Parameters<typeof prover.requireExchange>[0]> = {}, host = authority) => {
    try {
      prover.requireExchange(
        { key: keyIdOf(earlier), nonce: claim.nonce, proof: sign(earlier, claim), ...changes },
        host,
      );
      return 200;
    } catch (error) {
      return (error as { status: number }).status;
    }
  };
  t.equal(attempt(), 200);
  t.equal(attempt({ key: keyIdOf(token), proof: sign(token, claim) }), 401, 'the present token needs no exchange');
  t.equal(attempt({ proof: sign(token, claim) }), 401);
  t.equal(attempt({ proof: '' }), 401);
  t.equal(attempt({ proof: sign(earlier, { ...claim, instance: 'of-another-process' }) }), 401);
  t.equal(attempt({ nonce: nonce() }), 401, 'another nonce');
  t.equal(attempt({ nonce: 'short' }), 400);
  t.equal(attempt({}, '127.0.0.1:1'), 403, 'relayed from another address');
  const asServer = proofOf(earlier, claim);
  t.equal(attempt({ proof: asServer }), 401, 'a proof of the server is none of the page');
});
