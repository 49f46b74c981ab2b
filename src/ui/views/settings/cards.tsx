import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { dollars, messageOf, visible } from '../../../lib/browser.ts';
import { dashboardPaths, modelWords } from '../../../protocol/browser.ts';
import type { AgentChosen, ConfigView, ModelTest } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { useResource } from '../../app/resource.ts';
import { href } from '../../app/router.ts';
import { readRecord } from '../../parts/workspace-acts.ts';
import { AgentOptions } from '../now/agents.tsx';
import { KeyDialog, testWords } from '../now/key.tsx';
import { restartIfUp } from '../now/restart.ts';
import { placeOf, valueAt } from './model.ts';

interface CardsProps {
  readonly app: App;
  readonly config: ConfigView;
  readonly reload: () => void;
}

const line = (value: unknown): string => visible(String(value ?? ''), { multiline: false });

/** Most important settings, each with its actions. Actions need the Hub. */
export function Cards({ app, config, reload }: CardsProps) {
  const path = app.page.value?.workspacePath ?? '';
  // Model, key and agent of a workspace of a host are set on that machine.
  const hasHub = app.server.filesFrom !== null && app.server.host === null && path !== '';
  const { data, reload: readAgain } = useResource(
    async (signal) => (hasHub ? readRecord(app, null, path, signal) : null),
    [config],
  );
  const record = data.value;
  const at = (keyPath: string) => valueAt(config.effective, keyPath);
  const key = at('ApiKey');
  const isKeySet = typeof key === 'object' && key !== null && 'set' in key && key.set === true;
  const servers = Object.entries(at('McpServers') ?? {});
  const down = record?.problems.find(({ code }) => code === 'mcpServerDown');
  const needsLogin = (name: string) =>
    record?.problems.some(({ code, where }) => code === 'mcpServerNeedsLogin' && where === `McpServers.${name}`);
  const limit = (name: string) =>
    Number(at(`Budget.${name}`) ?? 0) > 0 ? dollars(Number(at(`Budget.${name}`))) : 'none';
  const changed = () => {
    reload();
    readAgain();
  };
  return (
    <div class="cards">
      <Card title="Model">
        <p>{record?.model ? line(modelWords(record.model)) : line(at('Model')) || 'Default of the provider'}</p>
        <p class="quiet">Key: {isKeySet ? (placeOf(config, 'ApiKey') ?? 'set') : 'not set'}</p>
        {hasHub && <ModelActs app={app} path={path} onChanged={changed} />}
      </Card>
      <Card title="Permissions">
        <p>
          Commands: sandbox {line(at('Tools.Shell.Sandbox'))}, network {line(at('Tools.Shell.Network'))}
        </p>
        <p class="quiet">{Object.keys(at('Permissions.Rules') ?? {}).length} rules</p>
      </Card>
      <Card title="Budget">
        <p>
          Turn {limit('TurnUsd')}, conversation {limit('SessionUsd')}, day {limit('DayUsd')}
        </p>
        {record && record.costUsd !== null && <p class="quiet">{dollars(record.costUsd)} spent so far</p>}
      </Card>
      <Card title="Agent">
        {hasHub ? (
          <AgentForm app={app} path={path} name={line(at('Agent.Name')) || 'oratorio'} onChanged={changed} />
        ) : (
          <p>{line(at('Agent.Name')) || 'Oratorio'}</p>
        )}
      </Card>
      <Card title="MCP">
        {servers.length === 0 && <p class="quiet">No server</p>}
        {servers.map(([name, server]) => (
          <p key={name}>
            <b>{line(name)}</b>{' '}
            <span class="quiet">
              {line(valueAt(server, 'command') ?? valueAt(server, 'url'))}
              {valueAt(server, 'enabled') === false && ' · off'}
            </span>{' '}
            {needsLogin(name) && <LogIn app={app} server={name} />}
          </p>
        ))}
        {down && <p class="warn">{line(down.what)}</p>}
      </Card>
      {record?.trust === 'restricted' && (
        <Card title="Trust">
          <p>Ignored until you trust the workspace: {record.restrictedSettings.map(line).join(', ')}</p>
          <a class="button" href={`/${href({ view: 'now', query: { trust: path } })}`}>
            Review and trust…
          </a>
        </Card>
      )}
    </div>
  );
}

function Card({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  const heading = useId();
  return (
    <section aria-labelledby={heading}>
      <h2 id={heading}>{title}</h2>
      {children}
    </section>
  );
}

/**
 * Starts a log-in at an MCP server, then shows its address as a link for the user. A browser on another machine cannot open the last
 * address of the log-in, so the user pastes it.
 */
function LogIn({ app, server }: { readonly app: App; readonly server: string }) {
  const url = useSignal<string | null>(null);
  const isDone = useSignal(false);
  const send = (redirect?: string) =>
    app.api.send<{ readonly url: string }>('POST', dashboardPaths.mcpLogin, { server, redirect }).then(
      (begun) => {
        url.value = begun.url;
        isDone.value = redirect !== undefined;
      },
      (error: unknown) => app.toast({ text: messageOf(error), tone: 'danger', ms: 10_000 }),
    );
  if (isDone.value) return <output>Logged in</output>;
  if (url.value === null) {
    return (
      <button type="button" onClick={() => void send()}>
        Log in…
      </button>
    );
  }
  return (
    <>
      <a class="button" href={url.value} target="_blank" rel="noreferrer">
        Open {new URL(url.value).host}
      </a>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void send(String(new FormData(event.currentTarget).get('at')));
        }}
      >
        <input name="at" required aria-label="Last address of the browser" placeholder="Last address of the browser" />
        <button type="submit">Finish</button>
      </form>
    </>
  );
}

interface ActsProps {
  readonly app: App;
  readonly path: string;
  readonly onChanged: () => void;
}

/** Tests the model with one small request, and links to the change of the key. */
function ModelActs({ app, path, onChanged }: ActsProps) {
  const isChanging = useSignal(false);
  const close = () => {
    isChanging.value = false;
    onChanged();
  };
  const result = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  const test = async () => {
    isBusy.value = true;
    result.value = 'Sending a request…';
    result.value = await app.hub
      .send<ModelTest>('POST', '/v1/model/test', { workspacePath: path })
      .then(testWords, messageOf);
    isBusy.value = false;
  };
  return (
    <>
      <form>
        <button type="button" disabled={isBusy.value} onClick={() => void test()}>
          Test
        </button>
        <button
          type="button"
          onClick={() => {
            isChanging.value = true;
          }}
        >
          Change the key…
        </button>
      </form>
      <p role="status">{result.value}</p>
      {isChanging.value && <KeyDialog app={app} path={path} onClose={close} />}
    </>
  );
}

interface AgentProps extends ActsProps {
  /** Name of the current agent. */
  readonly name: string;
}

/** Sets the agent of the workspace, and restarts the agent server. */
function AgentForm({ app, path, name, onChanged }: AgentProps) {
  /** Null: no choice yet. */
  const chosen = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  const choose = async (agent: string) => {
    isBusy.value = true;
    try {
      const { change } = await app.hub.send<AgentChosen>('POST', '/v1/workspaces/agent', {
        workspacePath: path,
        agent,
      });
      if (change === 'chosen') await restartIfUp(app, path);
      if (change === 'restricted') location.assign(`/${href({ view: 'now', query: { trust: path } })}`);
      else
        app.toast({ text: change === 'chosen' ? `${agent} now does the turns.` : `${agent} already does the turns.` });
      onChanged();
    } catch (error) {
      app.toast({ text: messageOf(error), tone: 'danger', ms: 10_000 });
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void choose(chosen.value ?? name);
      }}
    >
      <select
        aria-label="Agent"
        value={chosen.value ?? name}
        disabled={isBusy.value}
        onChange={(event) => {
          chosen.value = event.currentTarget.value;
        }}
      >
        <AgentOptions />
      </select>
      <button type="submit" disabled={isBusy.value}>
        Use and restart
      </button>
    </form>
  );
}
