import { ReviewApi } from './api.ts';
import type { Scene } from './scene.ts';

interface Diagnostics {
  readonly revision: string;
  readonly settings: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** Changes one setting over the API while everything runs. Resolves when every replica applies it. */
export async function changeSetting(
  { api, backends, until }: Scene,
  section: string,
  name: string,
  value: unknown,
): Promise<void> {
  const look = async (of: ReviewApi) => (await of.call('GET', '/settings/diagnostics')).body as Diagnostics;
  const { revision } = await look(api);
  const change = { baseRevision: revision, set: { [`${section}.${name}`]: value } };
  const answer = await api.call('PUT', '/settings/server-configuration', change);
  if (answer.status !== 200) throw new Error(`${section}.${name}: ${answer.status} ${JSON.stringify(answer.body)}`);
  for (const backend of backends) {
    const own = new ReviewApi(backend.url, () => backend.token);
    await until(
      `${backend.url} has the new settings`,
      async () => (await look(own)).settings[section]?.[name] === value,
    );
  }
}
