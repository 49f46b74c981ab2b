import t from 'tap';
import { defaults } from '../../../src/deploy/defaults.ts';
import { type Answer, sendHttp2, sendRaw, type Target } from './clients.ts';
import { authorityOf } from './hosts.ts';
import { combinations, deliveryHead, encrypted, http2Delivery, type Setup, sharedSetups } from './setup.ts';
import { headerOf, sha256 } from './upstream.ts';

const body = '{"action":"created"}';
const close = 'Connection: close';
const sized = `Content-Length: ${body.length}`;

const deliver = (setup: Setup, to: Target = encrypted(setup), headers: readonly string[] = [sized, close]) =>
  sendRaw(to, `${deliveryHead(setup, headers)}${body}`);

const shared = sharedSetups(t);

/** How many answers came on one connection. */
const answersIn = ({ text }: Answer): string[] =>
  Array.from(text.matchAll(/^HTTP\/1\.1 (\d+)/gm), ([, status]) => String(status));

for (const combination of combinations) {
  const { name, host } = combination;
  const isNamed = host.kind === 'dns';

  t.test(`Caddy ${name}: another TLS version, protocol or server name is refused`, async (t) => {
    const setup = await shared(combination);
    const { ports } = setup.gateway;
    const at = (tls: Parameters<typeof encrypted>[1]) => encrypted(setup, tls);
    const status = async (answer: Promise<Answer>): Promise<Answer['status']> => (await answer).status;

    t.equal(await status(deliver(setup)), 202, 'as GitHub');
    t.equal(await status(deliver(setup, at({ version: 'TLSv1.2' }))), 202, 'TLS 1.2');
    t.equal(await status(deliver(setup, at({ version: 'TLSv1.3' }))), 202, 'TLS 1.3');
    t.equal(await status(deliver(setup, at({ alpn: [] }))), 202, 'no ALPN');
    t.equal(await status(sendHttp2(encrypted(setup), http2Delivery(setup), Buffer.from(body))), 202, 'HTTP/2');
    t.equal(setup.upstream.deliveries.length, 5);

    t.equal(await status(deliver(setup, at({ version: 'TLSv1.1' }))), 'closed', 'TLS 1.1');
    t.equal(await status(deliver(setup, at({ alpn: ['gopher'] }))), 'closed', 'an ALPN of something else');
    t.equal(await status(deliver(setup, at({ serverName: 'evil.test' }))), 'closed', 'another server name');
    t.equal(await status(deliver(setup, { port: ports.https })), 400, 'HTTP where TLS is spoken');
    t.equal(await status(deliver(setup, at({}))), 202, 'and still here');
    const clear = { ...encrypted(setup), port: ports.http };
    t.match(String(await status(deliver(setup, clear))), /closed|400/, 'TLS where HTTP is spoken');
    const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
    t.not((await sendRaw({ port: ports.http }, preface)).status, 202, 'HTTP/2 without TLS');
    t.equal(setup.upstream.deliveries.length, 6, 'nothing else got through');
  });

  t.test(`Caddy ${name}: a handshake without a server name ${isNamed ? 'fails' : 'is served'}`, async (t) => {
    const setup = await shared(combination);
    const { status } = await deliver(setup, encrypted(setup, { serverName: '' }));
    t.equal(status, isNamed ? 'closed' : 202);
    t.equal(setup.upstream.deliveries.length, isNamed ? 0 : 1);
  });

  t.test(`Caddy ${name}: no second request hides in a delivery`, async (t) => {
    const setup = await shared(combination);
    const { deliveries } = setup.upstream;
    const hidden = `GET /api/v1/settings HTTP/1.1\r\nHost: ${authorityOf(host)}\r\n${close}\r\n\r\n`;
    const send = (headers: readonly string[], text: string) =>
      sendRaw(encrypted(setup), `${deliveryHead(setup, headers)}${text}`);

    t.strictSame(answersIn(await send([sized], `${body}${hidden}`)), ['202', '404'], 'one after the other');
    const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    t.strictSame(
      answersIn(await send(['Transfer-Encoding: chunked'], `${chunked}${hidden}`)),
      ['202', '404'],
      'chunked',
    );
    t.equal(deliveries.length, 2);
    for (const delivery of deliveries) t.equal(delivery.sha256, sha256(body));

    const refused: readonly (readonly string[])[] = [
      ['Content-Length: 5', 'Content-Length: 6'],
      ['Content-Length: 5, 6'],
      ['Content-Length: +5'],
      ['Content-Length: 0x5'],
      ['Content-Length: -1'],
      ['Content-Length : 5'],
      ['Transfer-Encoding: xchunked'],
      ['Transfer-Encoding: identity, chunked'],
      ['Transfer-Encoding: chunked, chunked'],
      ['Transfer-Encoding : chunked'],
      ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'],
      ['Transfer-Encoding: \x0bchunked'],
      ['X: y\0z', sized],
      [' X: y', sized],
      ['X y: z', sized],
    ];
    for (const headers of refused) {
      const { status } = await send([...headers, close], `0\r\n\r\n${hidden}`);
      t.match(status, /^(?:400|501)$/, JSON.stringify(headers));
    }
    t.equal(deliveries.length, 2, 'none of these was passed on');

    const both = await send(['Content-Length: 4', 'Transfer-Encoding: chunked', close], `${chunked}${hidden}`);
    t.strictSame(answersIn(both).slice(0, 1), ['202'], 'chunks win over a length (RFC 9112, section 6.3)');
    t.match(deliveries.slice(2), [{ method: 'POST', target: defaults.webhookPath, sha256: sha256(body) }]);
    t.equal(deliveries.length, 3);
  });

  t.test(`Caddy ${name}: a delivery does not become a tunnel`, async (t) => {
    const setup = await shared(combination);
    const upgrades = [
      [
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
      ],
      ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'],
    ];
    for (const headers of upgrades) {
      const last = `GET / HTTP/1.1\r\nHost: ${authorityOf(host)}\r\n${close}\r\n\r\n`;
      const answer = await sendRaw(encrypted(setup), `${deliveryHead(setup, [...headers, sized])}${body}${last}`);
      t.strictSame(answersIn(answer), ['202', '404'], String(headers[1]));
    }
    t.equal(setup.upstream.deliveries.length, upgrades.length);
    for (const delivery of setup.upstream.deliveries) {
      t.equal(headerOf(delivery, 'upgrade'), undefined);
      t.equal(delivery.sha256, sha256(body));
    }
  });
}
