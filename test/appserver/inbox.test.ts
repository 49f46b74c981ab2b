/** The stream of approvals and of the server's health, without sockets. */
import t from 'tap';
import { Inbox } from '../../src/appserver/inbox.ts';
import { says, service } from '../agent/helpers.ts';

t.test('regression: a server that cannot examine itself stays silent, and reports once it can', async (t) => {
  const { threads } = service(says('Hello.'));
  let isBroken = true;
  const inbox = new Inbox(threads, async () => {
    if (isBroken) throw new Error('cannot examine');
    return { status: 'ready', incarnation: 'i-1', idleMs: 0 };
  });
  t.teardown(() => inbox.close());
  const read = (heard: string[]) =>
    inbox.subscribe(
      (bytes) => heard.push(Buffer.from(bytes).toString()),
      () => {},
    );

  const first: string[] = [];
  const leave = read(first);
  await new Promise((resolve) => setImmediate(resolve));
  t.same(first, []);
  leave();
  isBroken = false;

  const second: string[] = [];
  read(second);
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(second.length, 1);
  t.match(second[0], /event: health\n.*"incarnation":"i-1"/s);
});
