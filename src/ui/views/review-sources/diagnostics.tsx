import type { ComponentChildren } from 'preact';
import { Fact, FactList } from '../../parts/fact-list.tsx';
import { Glyph } from '../../parts/glyphs.tsx';
import { JsonTree } from '../../parts/json-tree.tsx';
import type { BackendStatus, SettingsView } from '../review/api.ts';

interface DiagnosticsProps {
  readonly status: BackendStatus;
  readonly settings: SettingsView;
}

const sourceWords: Readonly<Record<string, string>> = {
  ready: 'ready',
  notConfigured: 'not set up (GitHub.AppId and its key)',
  failed: 'cannot be asked',
};

/** Version, readiness, settings and problems of this backend. */
export function Diagnostics({ status, settings }: DiagnosticsProps) {
  const { file, problem, warnings, restartNeededFor, fromEnvironment } = settings;
  return (
    <section class="block" aria-label="Backend and settings">
      <h2>Backend</h2>
      {problem !== null && <Remark tone="danger">The settings file as it is now is not used: {problem}</Remark>}
      {warnings.map((warning) => (
        <Remark key={warning} tone="warn">
          {warning}
        </Remark>
      ))}
      {restartNeededFor.length > 0 && (
        <Remark tone="warn">A restart is needed for {restartNeededFor.join(', ')}.</Remark>
      )}
      <FactList>
        <Fact name="Version">{status.version}</Fact>
        <Fact name="Node">{status.node}</Fact>
        {status.role !== undefined && <Fact name="Role">{status.role}</Fact>}
        {status.source && (
          <Fact name="GitHub">
            {sourceWords[status.source.state] ?? status.source.state}
            {status.source.message !== undefined && <span class="danger"> {status.source.message}</span>}
          </Fact>
        )}
        <Fact name="Storage">{status.storage === 'postgres' ? 'PostgreSQL' : 'SQLite'}</Fact>
        <Fact name="Writes">{status.writesEnabled ? 'on' : 'off: drafts stay here (GitHub.WritesEnabled)'}</Fact>
        <Fact name="Webhook">{status.webhookReady ? 'ready' : 'no secret (GitHub.WebhookSecret)'}</Fact>
        <Fact name="Settings">{status.settingsWritable ? 'may be changed over the API' : 'cannot be changed'}</Fact>
        <Fact name="File">
          <span class="mono">{file}</span>
        </Fact>
      </FactList>
      <h2>Effective settings</h2>
      <Overrides title="From the command line" settings={fromEnvironment.filter(isOption)} />
      <Overrides title="From the environment" settings={fromEnvironment.filter((each) => !isOption(each))} />
      <JsonTree label="Settings" value={settings.settings} />
    </section>
  );
}

type Override = SettingsView['fromEnvironment'][number];

const isOption = ({ variable }: Override): boolean => variable.startsWith('--');

const Overrides = ({ title, settings }: { readonly title: string; readonly settings: readonly Override[] }) =>
  settings.length === 0 ? null : (
    <p class="quiet">
      {title}: {settings.map(({ path, variable }) => `${path} (${variable})`).join(', ')}
    </p>
  );

const Remark = ({ tone, children }: { readonly tone: 'warn' | 'danger'; readonly children: ComponentChildren }) => (
  <p class={`remark ${tone}`} role="note">
    <Glyph name="warning" />
    <span>{children}</span>
  </p>
);
