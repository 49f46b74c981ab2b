import type { IncomingMessage, RequestListener } from 'node:http';
import t from 'tap';
import { defaults } from '../../../src/deploy/defaults.ts';
import { ask, askFor, FakeEngine, makeStack, publicName, put, remove } from './harness.ts';
import { certificateFor, gateway } from './tls.ts';

const path = defaults.webhookPath;

/** Answers as the real gateway does, with a backend behind it. */
const answering =
  (webhook = 403): RequestListener =>
  (request, response) => {
    request.resume();
    const isDelivery = request.method === 'POST' && request.url === path && request.headers.host === publicName;
    response.writeHead(isDelivery ? webhook : 404).end();
  };
const redirecting: RequestListener = ({ headers, url }: IncomingMessage, response) =>
  void response.writeHead(308, { location: `https://${headers.host}${url}` }).end();

t.test('a gateway that lets only deliveries through', async (t) => {
  const layout = makeStack(t, { hasIngress: true });
  const engine = new FakeEngine(layout).withGateway();
  const certificate = certificateFor(t, `DNS:${publicName}`);
  for (const onHttp of [redirecting, undefined]) {
    const address = await gateway(t, certificate, { onHttps: answering(), ...(onHttp && { onHttp }) });
    t.match(await askFor(t, 'ingress.probe', layout, { engine, gateway: address }), { status: 'ok' });
  }
  const limited = await gateway(t, certificate, { onHttps: answering(429) });
  t.match(
    await askFor(t, 'ingress.probe', layout, { engine, gateway: limited }),
    { status: 'ok' },
    'limits answer too',
  );
});

t.test('a gateway that lets too much or too little through is reported', async (t) => {
  const layout = makeStack(t, { hasIngress: true });
  const engine = new FakeEngine(layout).withGateway();
  const certificate = certificateFor(t, `DNS:${publicName}`);
  const probe = async (onHttps: RequestListener, onHttp: RequestListener = redirecting) =>
    askFor(t, 'ingress.probe', layout, { engine, gateway: await gateway(t, certificate, { onHttps, onHttp }) });
  t.match(await probe((_, response) => void response.writeHead(200).end()), {
    status: 'fail',
    saw: /GET .*: 200 in place of 404; POST \/health: 200 in place of 404; unsigned POST .*: 200 in place of 403/,
    hint: /webhook enable again/,
  });
  t.match(await probe(answering(502)), { status: 'fail', hint: /does not reach the backend/ });
  t.match(await probe(answering(503)), { status: 'fail', hint: /no webhook secret/ });
  const elsewhere: RequestListener = (_, response) =>
    void response.writeHead(308, { location: 'https://evil.test/' }).end();
  t.match(await probe(answering(), elsewhere), { status: 'fail', saw: /^http:\/\/: 308/ });
  const off = { httpPort: 1, httpsPort: 1 };
  t.match(await askFor(t, 'ingress.probe', layout, { engine, gateway: off }), {
    status: 'fail',
    saw: /no answer \(ECONNREFUSED\)/,
  });
});

t.test(
  'the check names the issuer and end of a certificate, and fails when it is expired, untrusted or for another name',
  async (t) => {
    const layout = makeStack(t, { hasIngress: true });
    const engine = new FakeEngine(layout).withGateway();
    const own = await gateway(t, certificateFor(t, `DNS:${publicName}`), { onHttps: answering() });
    const look = (more: object = {}) => askFor(t, 'ingress.certificate', layout, { engine, gateway: own, ...more });
    t.match(await look(), { status: 'ok', saw: /^Of Test authority gateway, until \d{4}-/ });
    t.match(await look({ gateway: { ...own, ca: [] } }), {
      status: 'fail',
      saw: /It is not trusted/,
      hint: /GitHub delivers only to/,
    });
    const later = (days: number) => ({ host: { now: () => Date.now() + days * 86_400_000 } });
    t.match(await look(later(80)), { status: 'warn', saw: /should have been renewed/ });
    t.match(await look(later(100)), { status: 'fail', saw: /ended at/ });
    const other = await gateway(t, certificateFor(t, 'DNS:other.example.test'), { onHttps: answering() });
    t.match(await look({ gateway: other }), { status: 'fail', saw: `The certificate is not for ${publicName}.` });
    t.match(await look({ gateway: { httpsPort: 1 } }), { status: 'fail', saw: /No TLS connection/ });
  },
);

t.test('an address as public host is asked for without a server name', async (t) => {
  const layout = makeStack(t, { hasIngress: true, host: '9.9.9.9' });
  const engine = new FakeEngine(layout).withGateway();
  const own = await gateway(t, certificateFor(t, 'IP:9.9.9.9'), { onHttps: answering() });
  t.match(await askFor(t, 'ingress.certificate', layout, { engine, gateway: own }), { status: 'ok' });
  t.match(await askFor(t, 'ingress.host', layout, { engine }), { status: 'ok', saw: 'It is for https://9.9.9.9.' });
});

t.test('an IPv6 address as public host', async (t) => {
  const layout = makeStack(t, { hasIngress: true, host: '2606:4700::1111' });
  const engine = new FakeEngine(layout).withGateway();
  t.match(await askFor(t, 'ingress.host', layout, { engine }), {
    status: 'ok',
    saw: 'It is for https://[2606:4700::1111].',
  });
  const own = await gateway(t, certificateFor(t, 'IP:2606:4700::1111'), {
    onHttps: (request, response) => {
      request.resume();
      response
        .writeHead(
          request.headers.host === '[2606:4700::1111]' && request.method === 'POST' && request.url === path ? 403 : 404,
        )
        .end();
    },
    onHttp: redirecting,
  });
  t.match(await askFor(t, 'ingress.certificate', layout, { engine, gateway: own }), { status: 'ok' });
  t.match(await askFor(t, 'ingress.probe', layout, { engine, gateway: own }), { status: 'ok' });
});

t.test('a host that GitHub cannot reach, or none, fails', async (t) => {
  const layout = makeStack(t, { hasIngress: true });
  const engine = new FakeEngine(layout).withGateway();
  for (const name of ['10.0.0.1', 'localhost', '127.0.0.1']) {
    put(layout.caddyfile, `https://${name} {\n\trespond 404\n}\n`, 0o644);
    t.match(await askFor(t, 'ingress.host', layout, { engine }), { status: 'fail', hint: /--public-host/ }, name);
  }
  remove(layout.caddyfile);
  const results = await ask(t, layout, { engine, only: ['ingress'] });
  t.match(results.get('ingress.host'), { status: 'fail', saw: /does not say for which host/ });
  t.match(results.get('ingress.probe'), { status: 'skip' });
});

t.test('the addresses of a host name are reported, and one of another host is a warning only', async (t) => {
  const layout = makeStack(t, { hasIngress: true });
  const engine = new FakeEngine(layout).withGateway();
  const look = (found: readonly string[] | Error, mine: readonly string[] = ['127.0.0.1', '10.0.0.4', '9.9.9.9']) =>
    askFor(t, 'ingress.dns', layout, {
      engine,
      isOffline: false,
      host: {
        addresses: () => mine,
        resolve: async () => {
          if (found instanceof Error) throw found;
          return found;
        },
      },
    });
  t.match(await look(['9.9.9.9']), { status: 'ok', saw: `${publicName} has 9.9.9.9, of this host.` });
  t.match(await look(['8.8.8.8']), {
    status: 'warn',
    saw: `${publicName} has 8.8.8.8; this host has 9.9.9.9.`,
    hint: /router/,
  });
  t.match(await look(['8.8.8.8'], ['10.0.0.4']), { status: 'warn', saw: /no public address of its own/ });
  t.match(await look([]), { status: 'warn', saw: /has no address yet/, hint: /A or AAAA/ });
  t.match(await look(['9.9.9.9', '10.0.0.4']), {
    status: 'warn',
    saw: /10\.0\.0\.4 cannot be reached from the Internet/,
  });
  t.match(await look(new Error('queryA ETIMEOUT')), { status: 'warn', saw: /ETIMEOUT/ });
  t.match(await askFor(t, 'ingress.dns', layout, { engine }), { status: 'skip', saw: 'Not checked offline.' });
});

t.test('ports 80 and 443 are answered, by the gateway', async (t) => {
  const layout = makeStack(t, { hasIngress: true });
  const own = await gateway(t, certificateFor(t, `DNS:${publicName}`), { onHttps: answering() });
  const engine = new FakeEngine(layout);
  const look = (address = own) => askFor(t, 'ingress.listeners', layout, { engine, gateway: address });
  t.match(await look(), { status: 'fail', saw: /answered by something else/ });
  t.match(await look({ ...own, httpPort: 1, httpsPort: 1 }), {
    status: 'fail',
    saw: 'No process listens on port 1; No process listens on port 1',
  });
  engine.withGateway(own.httpPort, own.httpsPort);
  t.match(await look(), { status: 'ok' });
  t.match(await look({ ...own, httpPort: 1 }), { status: 'fail', saw: 'No server answers on port 1' });
});

t.test('the running backend has the secret of .env, or another one, or none', async (t) => {
  const layout = makeStack(t, { hasIngress: true });
  const engine = new FakeEngine(layout).withGateway();
  const look = () => askFor(t, 'ingress.secret', layout, { engine });
  t.match(await look(), { status: 'ok', saw: 'Configured; the backend runs with it.' });
  engine.containers['backend'] = { env: { Oratorio__GitHub__WebhookSecret: 'another-secret-of-before' } };
  t.match(await look(), { status: 'fail', saw: /runs with another one/, hint: 'oratorio server restart' });
  engine.containers['backend'] = { env: { Oratorio__GitHub__WebhookSecret: '' } };
  t.match(await look(), { status: 'fail', saw: /started without it/ });
  engine.containers['backend'] = { state: 'exited' };
  t.match(await look(), { status: 'skip' });
  const argv = engine.commands.filter((each) => each.startsWith('exec')).join('\n');
  t.notMatch(argv, /canary/, 'the secret is in no argument');
});

t.test('the file of the gateway is checked by the gateway', async (t) => {
  const layout = makeStack(t, { hasIngress: true });
  const engine = new FakeEngine(layout).withGateway();
  const look = () => askFor(t, 'ingress.caddyfile', layout, { engine });
  t.match(await look(), { status: 'ok' });
  engine.answers.set('run --rm --interactive', {
    exitCode: 1,
    stderr: 'Error: adapting config: Caddyfile:3: unrecognized directive: profile\n',
  });
  t.match(await look(), { status: 'fail', saw: /unrecognized directive/, hint: /webhook enable/ });
  t.match(await askFor(t, 'ingress.container', layout, { engine }), { status: 'ok' });
});
