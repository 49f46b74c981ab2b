import t from 'tap';
import { defaults } from '../../../src/deploy/defaults.ts';
import { type Answer, sendHttp2, sendRaw } from './clients.ts';
import { type Row, requestsFor } from './requests.ts';
import { combinations, encrypted, type Setup, setUp } from './setup.ts';
import { headerOf, sha256 } from './upstream.ts';

const body = Buffer.from('{"zen":"Anything added dilutes everything else. \u00e9\u4e2d"}\r\n\0\xff', 'latin1');
const atOnce = 16;

function send(setup: Setup, { wire, method, target, host, headers = [] }: Row, name: string): Promise<Answer> {
  if (wire === 'http2') {
    const pseudo = { ':method': method, ':path': target, ...(host === null ? {} : { ':authority': host }) };
    return sendHttp2(encrypted(setup), { ...pseudo, 'x-row': name }, method === 'GET' ? null : body);
  }
  const head = [
    `${method} ${target} HTTP/1.1`,
    ...(host === null ? [] : [`Host: ${host}`]),
    ...headers,
    `X-Row: ${name}`,
    `Content-Length: ${body.length}`,
    'Connection: close',
  ];
  const to = wire === 'clear' ? { port: setup.gateway.ports.http } : encrypted(setup);
  return sendRaw(to, [Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), body]);
}

/** Every row, a few at a time, in the order of the rows. */
async function sendAll(setup: Setup, rows: readonly Row[]): Promise<Answer[]> {
  const answers: Answer[] = [];
  const queue = rows.entries();
  const work = async (): Promise<void> => {
    for (const [at, row] of queue) answers[at] = await send(setup, row, String(at));
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return answers;
}

function outcomeOf({ expected }: Row, answer: Answer | undefined): number | string | undefined {
  const status = answer?.status;
  if (status === 202) return 'delivered';
  return expected === 'refused' && (status === 400 || status === 404) ? expected : status;
}

const titleOf = ({ wire, method, target, host, headers = [] }: Row): string =>
  [wire, method, JSON.stringify(target), `host ${JSON.stringify(host)}`, ...headers].join(' ');

for (const combination of combinations) {
  const { name, host } = combination;
  t.test(`Caddy ${name}: only the exact POST reaches the backend`, async (t) => {
    const setup = await setUp(t, combination);
    const rows = requestsFor(host);
    t.ok(rows.length > 200, `${rows.length} requests`);
    const answers = await sendAll(setup, rows);

    t.strictSame(
      rows.map((row, at) => `${titleOf(row)} => ${outcomeOf(row, answers[at])}`),
      rows.map((row) => `${titleOf(row)} => ${row.expected}`),
    );
    const { deliveries } = setup.upstream;
    t.strictSame(
      deliveries.map((delivery) => headerOf(delivery, 'x-row')).sort(),
      rows.flatMap(({ expected }, at) => (expected === 'delivered' ? [String(at)] : [])).sort(),
    );
    for (const delivery of deliveries)
      t.match(delivery, { method: 'POST', target: defaults.webhookPath, isWhole: true, sha256: sha256(body) });
    const locations = answers.flatMap(({ location }) => location ?? []);
    t.strictSame(
      locations.filter((location) => !location.startsWith(`${host.origin}/`)),
      [],
    );
    t.equal(locations.length, rows.filter(({ expected }) => expected === 308).length);
  });
}
