import t from 'tap';
import type { HttpError } from '../../../src/http/index.ts';
import { DeliveryGate } from '../../../src/review/webhook/index.ts';

const request = (address: string) => ({ header: () => undefined, remoteAddress: address });

function scene(limits: ConstructorParameters<typeof DeliveryGate>[1]) {
  const gate = new DeliveryGate(({ remoteAddress }) => remoteAddress, limits);
  const refused: string[] = [];
  const open = (name: string, address = 'one') =>
    gate.open(request(address), (error: HttpError) => refused.push(`${name} ${error.status} ${error.code}`));
  return { gate, refused, open };
}

t.test('regression: over the common bound the largest unfinished body is refused', async (t) => {
  const { gate, refused, open } = scene({ bytes: 100, bytesPerAddress: 1_000 });
  const small = open('small', 'two');
  small.received(10);
  const large = open('large');
  large.received(80);
  const whole = open('whole', 'three');
  whole.received(5);
  whole.complete();
  t.same(refused, []);
  small.received(10);
  t.same(refused, ['large 503 intakeUnavailable']);
  t.equal(gate.bytes, 25, 'its bytes are free again');
  large.received(50);
  large.close();
  t.equal(gate.bytes, 25, 'a refused body counts no more');
  small.close();
  whole.close();
  t.equal(gate.bytes, 0);
});

t.test('regression: an address over its share loses a body of its own, another address none', async (t) => {
  const { refused, open } = scene({ bytes: 1_000, bytesPerAddress: 100 });
  open('of the other', 'two').received(90);
  open('large').received(70);
  open('small').received(20);
  t.same(refused, []);
  open('new').received(30);
  t.same(refused, ['large 503 intakeUnavailable']);
});

t.test('regression: announced bytes are not counted, unfinished bodies per address are bounded', async (t) => {
  const { gate, refused, open } = scene({ unfinishedPerAddress: 3 });
  for (const name of ['first', 'second', 'third']) open(name);
  t.equal(gate.bytes, 0);
  open('of the other', 'two');
  t.same(refused, []);
  open('fourth');
  t.same(refused, ['first 503 intakeUnavailable'], 'the oldest one gives way');
});
