import { join } from 'node:path';
import { type Discovery, discoverHub } from '../../client/index.ts';
import { portHolder } from '../../deploy/index.ts';
import { version } from '../../protocol/index.ts';
import { lockHolder, probeLock } from '../../supervise/index.ts';
import { type DoctorContext, fail, ok, type Seen, skip, type WithConfig, warn } from './finding.ts';

/** The Hub that serves this home, with findings about it. The checks do not start one. */
export interface HubReport {
  readonly found: Discovery;
  readonly findings: readonly Seen[];
}

export async function hub({ home, signal }: DoctorContext, user: WithConfig | undefined): Promise<HubReport> {
  const found = await discoverHub({ home, signal });
  if (found.kind === 'found') {
    const { apiBaseUrl, pid } = found.lock;
    return {
      found,
      findings: [
        ok('hub', `${apiBaseUrl}, process ${pid}`),
        versionOf(found.lock.version),
        ok('hub.port', `held by the Hub`),
      ],
    };
  }
  const port = await portOf(user);
  if (found.why === 'noLockFile' || found.why === 'processGone') {
    const mutex = join(home, 'hub', 'hub.mutex');
    if (probeLock(mutex) !== 'held')
      return { found, findings: [skip('hub', 'no Hub is running', { next: 'oratorio up' }), port] };
    const pid = lockHolder(mutex);
    const saw = `${pid === null ? 'a process' : `process ${pid}`} holds this home and publishes no address`;
    return {
      found,
      findings: [fail('hub', saw, { where: mutex, next: pid === null ? `fuser ${mutex}` : `kill ${pid}` }), port],
    };
  }
  return {
    found,
    findings: [fail('hub', found.message, { where: join(home, 'hub', 'hub.lock'), next: 'oratorio hub stop' }), port],
  };
}

function versionOf(hubVersion: string): Seen {
  if (hubVersion === version) return ok('hub.version', version);
  const next = 'oratorio hub stop --detach && oratorio up';
  return warn('hub.version', `the Hub is version ${hubVersion}, this is ${version}`, { next });
}

/** Whether the configured port is free for a Hub that is to start. */
async function portOf(user: WithConfig | undefined): Promise<Seen> {
  const id = 'hub.port';
  if (!user) return skip(id, 'the settings cannot be read');
  const { Port } = user.config.Hub;
  if (Port === 0) return ok(id, 'a free one is taken');
  const holder = await portHolder(Port);
  if (holder === undefined) return ok(id, `${Port} is free`);
  const by = holder ?? 'a program of another user';
  return fail(id, `${Port} is held by ${by}`, { where: 'Hub.Port', next: `ss -ltnp 'sport = :${Port}'` });
}
