/** A container engine whose socket this user may not use: command line, doctor and page name the socket and the next step. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { launchBrowser } from '../browser.ts';
import { fakeEngine } from '../places/fake-engine.ts';
import { makePlace, oratorio, startHub } from './harness.ts';
import { checkFaces, openPage } from './trouble.ts';

/** Takes from root the right to open every file. Another user does not have it. */
const withoutOverride =
  process.getuid?.() === 0 ? ['setpriv', '--bounding-set', '-dac_override,-dac_read_search', '--'] : [];

t.test(
  'a socket of an engine without permission is refused with its path and the next step on every face',
  async (t) => {
    const engine = await fakeEngine(t);
    chmodSync(engine.socket, 0);
    const place = { ...makePlace(t), launcher: withoutOverride };
    const workspacePath = place.workspace('forbidden', {});
    const Container = { Engine: engine.socket, Image: 'there:1', AllowRoot: true };
    writeFileSync(join(place.home, 'config.json'), JSON.stringify({ Place: { Default: 'container', Container } }), {
      mode: 0o600,
    });
    const hub = await startHub(place);
    const what =
      /engine\.sock does not answer: this user has no permission to use the socket\. Join the group of the socket/;

    const { code, stderr } = await oratorio(place, ['up', workspacePath, '--no-follow']);
    t.not(code, 0);
    t.match(stderr, what);
    const chosen = hub.client.ensure({ workspacePath, place: { kind: 'container' } });
    await t.rejects(chosen, { code: 'placeRefused', message: what }, 'a retry does not help');
    t.match(await oratorio(place, ['place', workspacePath]), { stdout: what });
    t.match((await oratorio(place, ['doctor', workspacePath, '--offline'])).stdout, what);

    const browser = await launchBrowser();
    t.teardown(() => browser.close());
    await checkFaces(t, place, await openPage(browser, place), [
      { name: 'forbidden', state: 'failed', what, next: /oratorio up \S+forbidden/ },
    ]);
    t.same(engine.requests, []);
    await hub.shutdown();
  },
);
