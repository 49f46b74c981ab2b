import t from 'tap';
import { WebhookIntake } from '../../../src/review/webhook/index.ts';
import { quiet } from '../store/databases.ts';
import { bytesOf, headersOf, scene, settingsWith } from '../webhook/harness.ts';

const MiB = 1_048_576;

t.test('huge bodies that nobody has checked yet are few at a time, whoever sends them', async (t) => {
  const { store } = await scene(t);
  const intake = new WebhookIntake({ settings: () => settingsWith(), store, logger: quiet });
  t.teardown(() => intake.close());
  const gate = Promise.withResolvers<void>();
  let held = 0;
  const body = { action: 'x' };
  const take = (headers: Record<string, string>) => {
    const all = headersOf({ body, headers });
    return intake.take({
      header: (name) => all[name],
      remoteAddress: '192.0.2.1',
      bytes: async () => {
        held += 1;
        await gate.promise;
        return bytesOf(body);
      },
    });
  };
  const many = [
    ...Array.from({ length: 50 }, () => take({ 'content-length': String(20 * MiB) })),
    ...Array.from({ length: 50 }, () => take({ 'transfer-encoding': 'chunked' })),
    ...Array.from({ length: 50 }, () => take({ 'content-length': '1000' })),
  ];
  t.equal(held, 12 + 50, 'of the small ones all');
  gate.resolve();
  const answers = await Promise.all(many);
  t.equal(answers.filter(({ status }) => status === 202).length, held);
  t.match(
    answers.find(({ status }) => status === 503),
    { body: { error: { code: 'intakeUnavailable' } }, retryAfterSeconds: Number },
  );
  t.match(await take({ 'content-length': String(20 * MiB) }), { status: 202 }, 'and then there is room again');
});
