import fc from 'fast-check';
import t from 'tap';
import { type SseMessage, SseParser } from '../../src/client/index.ts';
import { sseFrame } from '../../src/lib/index.ts';

const parse = (text: string): SseMessage[] => {
  const messages: SseMessage[] = [];
  new SseParser({ onMessage: (message) => messages.push(message) }).push(text);
  return messages;
};

const line = fc.string().map((text) => text.replaceAll(/[\r\n]/g, ' '));
const anyJson = fc.json();
/** Frames as the event streams wrote them before they shared a writer. */
const literals = {
  events: (id: string, event: string, data: string) => `event: ${event}\nid: ${id}\ndata: ${data}\n\n`,
  others: (id: string, event: string, data: string) => `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`,
  dataOnly: (id: string, data: string) => `id: ${id}\ndata: ${data}\n\n`,
};

t.test('a frame has its fields in the order given, byte for byte', async () => {
  fc.assert(
    fc.property(line, line, anyJson, (id, event, data) => {
      const isSame = [
        sseFrame({ event, id, data }) === literals.events(id, event, data),
        sseFrame({ id, event, data }) === literals.others(id, event, data),
        sseFrame({ id, data }) === literals.dataOnly(id, data),
      ];
      return isSame.every(Boolean);
    }),
  );
});

t.test('a parser reads back the written event', async () => {
  const id = line.filter((text) => !text.includes('\0'));
  const event = line.filter((text) => text !== '');
  fc.assert(
    fc.property(id, event, anyJson, (id, event, data) => {
      const [message, ...others] = parse(sseFrame({ id, event, data }));
      return others.length === 0 && message?.event === event && message.data === data && message.lastEventId === id;
    }),
  );
});

t.test('a line break in a field is refused, and the error names the field', async (t) => {
  t.throws(() => sseFrame({ data: 'a\nb' }), new TypeError('line break in the data of an event'));
  t.throws(() => sseFrame({ id: '1\r', data: '' }), new TypeError('line break in the id of an event'));
  t.throws(
    () => sseFrame({ event: 'x\n\ndata: forged', data: '' }),
    new TypeError('line break in the event of an event'),
  );
});
