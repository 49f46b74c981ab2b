import * as v from 'valibot';
import { planUserChange } from '../../config/index.ts';
import type { Fleet } from '../../hosts/index.ts';
import { type AnyRoute, json, type Reply, type RequestContext } from '../../http/index.ts';
import type { Logger } from '../../log/index.ts';
import { HostActionInput, HostInput, hostActions } from '../../protocol/index.ts';
import type { HubCaller } from '../auth.ts';
import { hubError } from '../errors.ts';
import { onHost } from '../pages/index.ts';
import { onRemote } from '../remote.ts';
import { hubRoutes } from '../route-table.ts';
import { type Bind, notForPage } from './bind.ts';
import { refusing } from './workspaces.ts';

export interface HostRoutesOptions {
  readonly fleet: Fleet;
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly logger: Logger;
}

const pageActions: ReadonlySet<string> = new Set(['ensure', 'restart', 'stop']);

/** Routes of other machines. Writing routes change the user's settings file, so they require the owner's token. */
export function hostRoutes(bind: Bind, { fleet, home, environment: env, logger }: HostRoutesOptions): AnyRoute[] {
  function store(name: string, setting: 'Enabled' | null, value: unknown): void {
    const path = setting === null ? (['Hosts', name] as const) : (['Hosts', name, setting] as const);
    refusing(() => planUserChange({ home, env, set: [{ path: [...path], value }] }).apply());
  }

  /** Settings file and connections change together. */
  const inTurn = (change: () => Promise<Reply>): Promise<Reply> => onHost(() => fleet.inTurn(change));

  async function add(context: RequestContext<never>): Promise<Reply> {
    const { name, ssh, program = 'oratorio' } = await context.json(HostInput);
    return inTurn(async () => {
      onHost(() => fleet.requireRoom(name));
      store(name, null, { Ssh: ssh, ...(program !== 'oratorio' && { Program: program }) });
      const host = await fleet.put({ name, ssh, program, isEnabled: true });
      logger.info('a host was added', { host: name, ssh });
      return json(200, host.record());
    });
  }

  async function remove(name: string): Promise<Reply> {
    onHost(() => fleet.byName(name));
    store(name, null, undefined);
    const record = await fleet.remove(name);
    logger.info('a host was removed', { host: name });
    return json(200, record);
  }

  async function enable(name: string, isEnabled: boolean): Promise<Reply> {
    const { settings } = onHost(() => fleet.byName(name));
    store(name, 'Enabled', isEnabled);
    const host = await fleet.put({ ...settings, isEnabled });
    return json(200, host.record());
  }

  async function change(context: RequestContext<never>): Promise<Reply> {
    const { name = '', action = '' } = context.params;
    const { workspacePath } = await context.json(HostActionInput);
    onHost(() => fleet.byName(name));
    // A page acts on workspaces, and changes no settings.
    const caller: HubCaller = context.principal;
    if (caller !== 'owner' && !pageActions.has(action)) throw notForPage();
    switch (v.is(v.picklist(hostActions), action) ? action : null) {
      case 'ensure':
      case 'restart':
      case 'stop': {
        if (workspacePath === undefined)
          throw hubError('invalidRequest', 'workspacePath is missing: name a workspace by its absolute path.');
        const { hub } = onHost(() => fleet.connected(name));
        const { signal } = context;
        const work = () => {
          if (action === 'ensure') return hub.ensure({ workspacePath }, { signal });
          return action === 'stop' ? hub.stop(workspacePath, { signal }) : hub.restart({ workspacePath }, { signal });
        };
        return json(200, { ...(await onRemote(name, work, signal)), host: name, asOf: null });
      }
      case 'remove':
        return inTurn(() => remove(name));
      case 'enable':
      case 'disable':
        return inTurn(() => enable(name, action === 'enable'));
      default:
        throw hubError('notFound', `Unknown action. Use one of: ${hostActions.join(', ')}`);
    }
  }

  return [
    bind(hubRoutes.listHosts, () =>
      json(
        200,
        fleet.hosts().map((host) => host.record()),
      ),
    ),
    bind(hubRoutes.addHost, add),
    bind(hubRoutes.changeHost, change),
  ];
}
