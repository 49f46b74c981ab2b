import type { App } from '../../app/app.ts';
import { HubOverview } from './hub.tsx';
import './overview.css';
import { WorkspaceOverview } from './workspace.tsx';

/** Summary of one workspace, or of the Hub and all of its workspaces. */
export default function View({ app }: { readonly app: App }) {
  return app.page.value?.kind === 'hub' ? <HubOverview app={app} /> : <WorkspaceOverview app={app} />;
}
