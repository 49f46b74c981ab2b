/** The actors of this server. */
import type { App } from '../../app/app.ts';
import { ActorsPage } from './page.tsx';
import { createServerSource } from './server-source.ts';

export default function ActorsView({ app }: { readonly app: App }) {
  return <ActorsPage app={app} createSource={createServerSource} />;
}
