import t from 'tap';
import { followRepositories } from '../../../src/review/backend/settings.ts';
import type { SettingsChange } from '../../../src/review/settings/index.ts';
import { ReviewStoreError } from '../../../src/review/store/index.ts';
import { quiet } from '../store/databases.ts';
import { settingsWith } from '../webhook/harness.ts';

t.test('regression: repositories changed during a database outage are saved after it', async (t) => {
  let current = settingsWith({ Repositories: ['octo/hello'] });
  let listener: (change: SettingsChange) => void = () => {};
  let away = 0;
  const kept: (readonly string[])[] = [];
  const published = Promise.withResolvers<void>();
  const stop = await followRepositories(
    {
      get current() {
        return current;
      },
      subscribe(given) {
        listener = given;
        return () => undefined;
      },
    },
    {
      async syncRepositories(wanted) {
        away -= 1;
        if (away >= 0) throw new ReviewStoreError('databaseUnavailable', 'It is away');
        kept.push(wanted.map(({ name }) => name));
      },
      publish: async () => published.resolve(),
    },
    quiet,
    1,
  );
  away = 3;
  current = settingsWith({ Repositories: ['octo/hello', 'octo/more'] });
  listener({ settings: current, changed: ['GitHub.Repositories'], restartNeededFor: [] });
  await published.promise;
  t.same(kept, [['hello'], ['hello', 'more']]);
  away = Number.POSITIVE_INFINITY;
  listener({ settings: current, changed: [], restartNeededFor: [] });
  await stop();
  t.pass('what is still tried ends with the backend');
});
