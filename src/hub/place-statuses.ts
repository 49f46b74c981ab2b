import { loadConfig } from '../config/index.ts';
import { EngineApi } from '../places/index.ts';
import type { PlaceStatus } from '../protocol/index.ts';
import { containerSettings, engineAt, isPod, type PlaceConfig, type Services, withEngine } from './container.ts';
import { StartError } from './failure.ts';
import { podStatus } from './pod.ts';

/** `GET /v1/places`, for the user's settings. @throws ConfigError */
export async function placeStatuses(hub: Services): Promise<PlaceStatus[]> {
  const loaded = loadConfig({ home: hub.home, env: hub.environment });
  const { Default } = loaded.config.Place;
  const nothing = { engine: null, image: null, version: null, problem: null };
  return [
    { kind: 'local', isDefault: Default === 'local', ...nothing },
    {
      kind: 'container',
      isDefault: Default === 'container',
      ...nothing,
      ...(await placeStatus(hub, loaded, 'container')),
    },
    ...(loaded.config.Place.Pod.Volumes.length > 0
      ? [{ kind: 'pod' as const, isDefault: false, ...nothing, ...(await placeStatus(hub, loaded, 'pod')) }]
      : []),
  ];
}

async function placeStatus(
  hub: Services,
  loaded: PlaceConfig,
  kind: 'container' | 'pod',
): Promise<Partial<PlaceStatus>> {
  const settings = containerSettings(loaded, { kind });
  if (!settings) return {};
  try {
    const found = withEngine(settings, hub);
    if (isPod(found)) return await podStatus(found, hub);
    const [facts, problem] = await Promise.all([
      new EngineApi(found.engine).facts().catch(() => null),
      engineAt(found.engine, hub).check({ settings: found, home: hub.home }),
    ]);
    const version = facts && `${facts.name} ${facts.version}${facts.isRootless ? ', rootless' : ''}`;
    return { engine: found.engine, image: found.image, version, problem: problem?.message ?? null };
  } catch (error) {
    if (error instanceof StartError) return { image: settings.image, problem: error.message };
    throw error;
  }
}
