/** The notice of a decided request goes away, in browsers that let a page do so. */
import t from 'tap';
import { closeNotice } from '../../src/ui/views/inbox/notices/browser-push.ts';

function browser(registration: unknown, isSecure = true): void {
  const serviceWorker = { getRegistration: async () => registration };
  Object.defineProperty(globalThis, 'navigator', { value: { serviceWorker }, configurable: true });
  Object.defineProperty(globalThis, 'isSecureContext', { value: isSecure, configurable: true });
}

t.test('closes the notices of this request', async (t) => {
  const asked: unknown[] = [];
  let closed = 0;
  const notice = {
    close() {
      closed += 1;
    },
  };
  browser({
    async getNotifications(filter: unknown) {
      asked.push(filter);
      return [notice, notice];
    },
  });
  await closeNotice('site/approval_1');
  t.strictSame(asked, [{ tag: 'site/approval_1' }]);
  t.equal(closed, 2);
});

t.test('is content without a worker, without the list of notices, and at an address that is not secure', async (t) => {
  browser(undefined);
  await t.resolves(closeNotice('a/b'));
  browser({});
  await t.resolves(closeNotice('a/b'));
  browser(undefined, false);
  await t.resolves(closeNotice('a/b'));
});
