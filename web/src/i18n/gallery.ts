// Texts of the view `gallery`.

export const gallery = {} as const satisfies Record<string, readonly [en: string, zh: string]>
