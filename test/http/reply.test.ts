import t from 'tap';
import { bytes, empty, json, jsonBytes, text } from '../../src/http/index.ts';

t.test('builders', async (t) => {
  t.strictSame(json(201, { a: 1 }), {
    kind: 'bytes',
    status: 201,
    headers: [['content-type', 'application/json']],
    body: '{"a":1}',
  });
  t.strictSame(jsonBytes(200, Buffer.from('1')).headers, [['content-type', 'application/json']]);
  t.strictSame(text(200, 'x', [['x-a', 'b']]).headers, [
    ['content-type', 'text/plain; charset=utf-8'],
    ['x-a', 'b'],
  ]);
  t.strictSame(empty(), { kind: 'bytes', status: 204, headers: [], body: '' });
});

t.test('an invalid header name or value is refused', async (t) => {
  t.throws(() => json(200, 1, [['x-a', 'b\r\nset-cookie: c']]), TypeError);
  t.throws(() => bytes(200, 'text/html\n', 'x'), TypeError);
  t.throws(() => text(200, 'x', [['x a', 'b']]), TypeError);
  t.throws(() => text(200, 'x', [['X-A', 'b']]), TypeError);
});
