/** Jobs and tasks from the command line: a real agent server behind a stand-in for the Hub. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import t, { type Test } from 'tap';
import { durationMs, momentOf, scheduleOf } from '../../src/cli/commands/cron-options.ts';
import { relative } from '../../src/cli/commands/cron-render.ts';
import { runCommandLine } from '../../src/cli/run.ts';
import { startServer } from '../appserver/harness.ts';
import { fakeHub, lockOf, recordOf, sendJson, statusOf, writeLock } from '../client/fake-hub.ts';
import { programEnvironment } from '../programs.ts';

class Collected extends Writable {
  text = '';
  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += String(chunk);
    done();
  }
}

/** A workspace with a real agent server, and command lines given in it. */
async function withServer(t: Test, config: unknown = {}) {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-cron-')));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const { server, path } = await startServer(t, undefined, { config });
  const record = recordOf(path, { endpoints: { appServerWebSocket: server.webSocketUrl } });
  const hub = await fakeHub((request, response) =>
    sendJson(response, 200, request.url === '/v1/status' ? statusOf(hub.baseUrl) : record),
  );
  t.teardown(() => hub.close());
  writeLock(home, lockOf(hub.baseUrl));
  const cli = async (...argv: string[]) => {
    const [stdout, stderr] = [new Collected(), new Collected()];
    const env = { ...programEnvironment, HOME: home, ORATORIO_HOME: home };
    const interruption = () => ({ signal: new AbortController().signal, exit: () => 'interrupted' as const });
    const code = await runCommandLine(argv, { stdout, stderr, env, cwd: path, interruption });
    return { code, stdout: stdout.text, stderr: stderr.text };
  };
  const json = async (...argv: string[]) => {
    const { code, stdout, stderr } = await cli(...argv, '--json');
    if (code !== 0) throw new Error(`${argv.join(' ')}: ${stdout}${stderr}`);
    return JSON.parse(stdout);
  };
  return { cli, json };
}

t.test('a job can be added, listed, shown, run, changed and removed', { timeout: 600_000 }, async (t) => {
  const { cli, json } = await withServer(t);
  t.match(await cli('cron', 'list'), { code: 0, stdout: /There are no jobs.*oratorio cron add/ });
  // Hours away: it is not to become due meanwhile, nor to be due in less than a minute.
  const now = Number(
    new Date().toLocaleString('en-GB', { timeZone: 'Europe/Berlin', hour: 'numeric', hourCycle: 'h23' }),
  );
  const hour = now === 6 || now === 7 ? 9 : 7;
  const added = await cli(
    'cron',
    'add',
    '--daily',
    `${hour}:30`,
    '--tz',
    'Europe/Berlin',
    '--name',
    'morning',
    'count to 3',
  );
  t.match(added, { code: 0, stderr: '' });
  t.match(
    added.stdout,
    new RegExp(
      `morning\\n +id +job_[0-9a-f]+ +job\\n[\\s\\S]*Every day at 0${hour}:30 \\(Europe/Berlin\\)\\n +next +\\d{4}-`,
    ),
  );
  const [job] = await json('cron', 'list');
  t.match(job, { name: 'morning', kind: 'cron', state: 'waiting', upcoming: { length: 5 } });
  t.match(await cli('cron', 'list'), {
    code: 0,
    stdout: new RegExp(
      `^ID +STATE +NEXT +LAST +SCHEDULE +NAME\\njob_\\w+ +waiting +in \\d+ \\w+ +- +Every day at 0${hour}:30 \\(Europe/Berlin\\) +morning\\n$`,
    ),
  });
  t.match(await cli('cron', 'run', 'morning', '--wait'), {
    code: 0,
    stdout: 'Demo model (offline, no AI): 1 2 3\n',
  });
  const shown = await cli('cron', 'show', job.id);
  t.match(shown.stdout, /completed +\d+\.\d s, by hand +Demo model/);
  t.match(shown.stdout, `${hour}:30 Europe/Berlin  `, 'regression: times are those of the schedule, and name its zone');
  t.match(await cli('cron', 'disable', 'morning'), { code: 0, stdout: /state +paused/ });
  t.match(await json('cron', 'enable', 'morning'), { enabled: true, state: 'waiting' });
  t.match(await cli('cron', 'cancel', 'morning'), { code: 1, stderr: /nothing of it is under way/ });
  t.match(await cli('cron', 'remove', 'morning'), {
    code: 0,
    stdout: `Removed morning (${job.id}) and its history.\n`,
  });
  t.match(await cli('cron', 'show', 'morning'), { code: 1, stderr: /no job or task morning[\s\S]*oratorio cron list/ });
});

t.test('every kind of schedule and tasks can be added', { timeout: 600_000 }, async (t) => {
  const { cli, json } = await withServer(t);
  t.match(await json('cron', 'add', '--every', '1h30m', 'x'), { schedule: { kind: 'every', everyMs: 5_400_000 } });
  t.match(await json('cron', 'add', '--at', '+30m', '--once', 'x'), { schedule: { kind: 'at' }, deleteAfterRun: true });
  t.match(await json('cron', 'add', '--cron', '0 9 * * MON-FRI', '--thread', 'own', '--yes', 'x'), {
    scheduleText: /At 09:00, Monday through Friday/,
    binding: { mode: 'own' },
    approvalPolicy: 'autoApprove',
  });
  t.match(await json('task', 'add', '--disabled', '--ask', '--model', 'm', 'later'), {
    kind: 'task',
    state: 'paused',
    approvalPolicy: 'default',
    model: 'm',
  });
  t.match(await cli('task', 'add', '--wait', 'count to 4'), {
    code: 0,
    stdout: 'Demo model (offline, no AI): 1 2 3 4\n',
  });
  t.match(await cli('task', 'list'), {
    code: 0,
    stdout: /finished +- +completed (now|less than a minute ago|\d+ minutes? ago)[\s\S]*count to 4/,
  });
  const { id } = (await json('task', 'list'))[0];
  t.match(await json('cron', 'run', id, '--wait'), { status: 'completed', trigger: 'manual' });
  t.match(await cli('cron', 'run', 'x'), { code: 1, stderr: /3 are called x.[\s\S]*Name one by its id: job_/ });
});

t.test('an invalid command is refused with the next step', { timeout: 600_000 }, async (t) => {
  const { cli } = await withServer(t);
  t.match(await cli('cron'), { code: 2, stderr: /cron needs a subcommand: list, add, show, run/ });
  t.match(await cli('cron', 'add', 'x'), { code: 2, stderr: /needs a schedule: --every, --at, --daily or --cron/ });
  t.match(await cli('cron', 'add', '--every', 'often', 'x'), { code: 2, stderr: /such as 15m, 2h or 1d, not often/ });
  t.match(await cli('cron', 'add', '--at', 'soon', 'x'), { code: 2, stderr: /2026-12-24T18:00 or \+30m, not soon/ });
  t.match(await cli('cron', 'add', '--every', '1h', '--daily', '07:00', 'x'), {
    code: 2,
    stderr: /not --every and --daily/,
  });
  t.match(await cli('cron', 'add', '--every', '1h', '--tz', 'UTC', 'x'), { code: 2, stderr: /--tz goes with/ });
  t.match(await cli('cron', 'add', '--yes', '--ask', '--every', '1h', 'x'), { code: 2, stderr: /not both/ });
  t.match(await cli('cron', 'add', '--every', '10s', 'x'), { code: 2, stderr: /a minute at least/ });
  t.match(await cli('cron', 'add', '--daily', '25:00', 'x'), { code: 2, stderr: /such as 07:30, not 25:00/ });
  t.match(await cli('cron', 'add', '--daily', '7:00', '--tz', 'Mars/Olympus', 'x'), {
    code: 2,
    stderr: /--tz is an IANA time zone such as Europe\/Berlin, not Mars\/Olympus/,
  });
  t.match(await cli('cron', 'add', '--cron', '0 0 30 2 *', 'x'), {
    code: 1,
    stderr: /is never due: no year has such a day/,
  });
  t.match(await cli('cron', 'add', '--at', '2020-01-01T00:00', 'x'), { code: 1, stderr: /has passed/ });
  t.match(await cli('cron', 'run'), { code: 2, stderr: /needs the id or the name/ });
  const machine = await cli('cron', 'run', 'none', '--json');
  t.match(JSON.parse(machine.stdout), { error: { code: 'automationNotFound' } });
});

t.test('with automations disabled cron reports it and task add fails', { timeout: 600_000 }, async (t) => {
  const { cli } = await withServer(t, { Automations: { Enabled: false } });
  t.match(await cli('cron', 'list'), { code: 0, stderr: /switched off here \(Automations.Enabled\)/ });
  t.match(await cli('task', 'add', 'x'), { code: 1, stderr: /Automations are disabled/ });
});

t.test('durations and times are parsed in their usual spellings', async (t) => {
  t.same(['90s', '15m', '1h30m', '2d', '1w', '', '5', '1y', 'm', '-1m'].map(durationMs), [
    90_000,
    900_000,
    5_400_000,
    172_800_000,
    604_800_000,
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  const now = Date.parse('2026-01-01T00:00:00Z');
  t.equal(momentOf('+1h', now), '2026-01-01T01:00:00.000Z');
  t.equal(momentOf('2026-12-24T18:00Z', now), '2026-12-24T18:00:00.000Z');
  t.equal(momentOf('2026-12-24 18:00+01:00', now), '2026-12-24T17:00:00.000Z');
  t.equal(momentOf('2026-12-24T18:00', now), new Date(2026, 11, 24, 18).toISOString(), 'the zone of this machine');
  for (const wrong of ['tomorrow', '18:00', '2026-13-45T00:00', '+soon', '1']) t.equal(momentOf(wrong, now), undefined);
  t.same(scheduleOf({}, 'cron add', now), undefined);
  t.equal(relative('2026-01-01T03:00:00Z', now), 'in 3 hours');
  t.equal(relative('2025-12-30T00:00:00Z', now), '2 days ago');
  t.equal(relative('2026-01-01T00:00:40Z', now), 'in less than a minute');
  t.equal(relative('2025-12-31T23:59:30Z', now), 'less than a minute ago');
  t.equal(relative('2026-01-01T00:00:01Z', now), 'now');
});

t.test(
  'a date that never comes and an expression that cannot be read are refused with the fields to correct',
  async (t) => {
    const { cli } = await withServer(t);
    const add = (expression: string) => cli('cron', 'add', '--cron', expression, 'hello');
    t.match(await add('0 9 31 2 *'), {
      code: 1,
      stderr: /“0 9 31 2 \*” is never due.*day and month.*e\.g\. 0 9 28 2 \*/,
    });
    t.match(await add('soon'), { code: 1, stderr: /cannot be read.*minute hour day month weekday/ });
    t.match(await cli('cron', 'list'), { stdout: /There are no jobs/ });
    t.match(await add('0 9 29 2 *'), { code: 0 }, 'control: a leap day comes');
  },
);
