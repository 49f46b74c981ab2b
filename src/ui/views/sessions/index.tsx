import type { App } from '../../app/app.ts';
import './sessions.css';
import { SessionsPage } from './table.tsx';
import { TracePage } from './trace/index.tsx';

/** All sessions, or with a key in the address one of them. */
export default function View({ app }: { readonly app: App }) {
  const [sessionKey] = app.router.route.value.path;
  if (sessionKey === undefined) return <SessionsPage app={app} />;
  return <TracePage key={sessionKey} app={app} sessionKey={sessionKey} />;
}
