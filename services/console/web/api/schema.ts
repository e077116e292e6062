/** Made from the admin API by `npm run generate`: change the API, not this file. */
export interface paths {
    "/admin/v1/tenants": {
        get: {
            parameters: {
                query?: {
                    limit?: number;
                    cursor?: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: components["schemas"]["Tenant"][];
                            limit: number;
                            next_cursor: string | null;
                            total: number;
                        };
                    };
                };
            };
        };
        post: {
            requestBody: {
                content: {
                    "application/json": {
                        tenant_id: string;
                        name?: string;
                        environment?: "live" | "sandbox";
                        webhook_url?: string | null;
                    };
                };
            };
            responses: {
                201: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            environment: "live" | "sandbox";
                            public_api_key: string;
                            hmac_secret: string;
                            webhook_secret: string;
                            webhook_url: string | null;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["Tenant"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/rates": {
        put: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        ingest_rate?: {
                            per_second: number;
                            burst: number;
                        } | null;
                        ingest_bytes?: {
                            per_second: number;
                            burst: number;
                        } | null;
                        ingest_share?: number | null;
                        rest_rate?: {
                            per_second: number;
                            burst: number;
                        } | null;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["Tenant"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/suspend": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            status: "active" | "suspended";
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/resume": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            status: "active" | "suspended";
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/stale-secret-requests": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            retired_secret: {
                                last4: string;
                                retired_at: string;
                            } | null;
                            requests: number;
                            data: {
                                sdk_version: string;
                                requests: number;
                                last_seen_at: string;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/requests": {
        get: {
            parameters: {
                query?: {
                    outcome?: "all" | "accepted" | "refused";
                    limit?: number;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            data: {
                                kind: "telemetry" | "registration";
                                at: string;
                                request_id: string;
                                edge_id: string;
                                status: number;
                                code: string;
                                reason: string | null;
                                detail: string | null;
                                verified: boolean;
                                device_id: string | null;
                                sdk_version: string | null;
                                event_id: string | null;
                                rasp_score: number | null;
                                rasp_action: string | null;
                            }[];
                            edges: {
                                edge_id: string;
                                since: string;
                                left_out: number;
                            }[];
                            silent_edges: string[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/signature-check": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        body?: string;
                        body_base64?: string;
                        signature: string;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            valid: boolean;
                            signature_form: string;
                            received: {
                                bytes: number;
                                sha256: string;
                            };
                            findings: {
                                code: string;
                                text: string;
                            }[];
                            body_errors: {
                                path: string;
                                message: string;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/apps": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            data: {
                                platform: "android" | "ios";
                                id: string;
                                signers: string[];
                                team: string | null;
                                play_keys: boolean;
                                development: boolean;
                                created_at: string;
                            }[];
                        };
                    };
                };
            };
        };
        put: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        platform: "android";
                        id: string;
                        signers: string[];
                        play_keys?: {
                            decryption_key: string;
                            verification_key: string;
                        } | null;
                    } | {
                        platform: "ios";
                        id: string;
                        team: string;
                        development?: boolean;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            platform: "android" | "ios";
                            id: string;
                            signers: string[];
                            team: string | null;
                            play_keys: boolean;
                            development: boolean;
                            created_at: string;
                            tenant_id: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/apps/{platform}/{app_id}": {
        delete: {
            parameters: {
                path: {
                    tenant_id: string;
                    platform: "android" | "ios";
                    app_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            platform: "android" | "ios";
                            id: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/attestation-check": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        evidence_base64: string;
                        provider?: "key_attestation" | "app_attest" | "play_integrity";
                        challenge?: string;
                        body_base64?: string;
                        public_key_base64?: string;
                        at?: string;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            provider: "key_attestation" | "app_attest" | "play_integrity";
                            verdict: "verified" | "rejected";
                            reason: string | null;
                            level: "strongbox" | "hardware" | "software" | "none";
                            facts: {
                                [key: string]: unknown;
                            };
                            steps: {
                                step: string;
                                ok: boolean;
                                detail: string;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/attestation-coverage": {
        get: {
            parameters: {
                query?: {
                    days?: number;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            from: string;
                            to: string;
                            totals: {
                                events: number;
                                install_key: number;
                                verified: number;
                                rejected: number;
                                missing: number;
                            };
                            version_count: number;
                            versions: {
                                platform: string;
                                sdk_version: string;
                                events: number;
                                install_key: number;
                                verified: number;
                                rejected: number;
                                missing: number;
                            }[];
                            reasons: {
                                provider: string;
                                reason: string;
                                registrations: number;
                                devices: number;
                                last_at: string;
                            }[];
                            shared_keys: {
                                kind: "key" | "remote_issuer" | "issuer";
                                id: string;
                                count: number;
                                devices: number;
                                last_at: string;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/rotate": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        hmac?: boolean;
                        webhook?: boolean;
                        api_key?: boolean;
                    } | null;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            public_api_key?: string;
                            hmac_secret?: string;
                            webhook_secret?: string;
                            duration_ms: number;
                            confirmed_edges: string[];
                            lease_expired_edges: string[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/webhook": {
        put: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        url: string;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            webhook_url: string | null;
                        };
                    };
                };
            };
        };
        delete: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            webhook_url: string | null;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/rotation": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            rotation: {
                                rotation_id: string;
                                started_by: string;
                                started_at: string;
                                state: "running" | "done" | "failed" | "lost";
                                step: ("old_off" | "new_on") | null;
                                edges: {
                                    edge_id: string;
                                    old_off: {
                                        outcome: "confirmed" | "lease_expired";
                                        at: string;
                                    } | null;
                                    new_on: {
                                        outcome: "confirmed" | "lease_expired";
                                        at: string;
                                    } | null;
                                }[];
                                duration_ms: number | null;
                                failure: string | null;
                                new_keys: {
                                    until: string;
                                    yours: boolean;
                                } | null;
                            } | null;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/rotation/keys": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            public_api_key?: string;
                            hmac_secret?: string;
                            webhook_secret?: string;
                        };
                    };
                };
            };
        };
        delete: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/install-root/rotate": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            epoch: number | null;
                            previous_epoch: number | null;
                            confirmed_edges: string[];
                            lease_expired_edges: string[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/install-root/previous": {
        delete: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            epoch: number | null;
                            previous_epoch: number | null;
                            confirmed_edges: string[];
                            lease_expired_edges: string[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/shared-secret": {
        put: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        off: boolean;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            shared_secret_off: boolean;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/alerts": {
        get: {
            parameters: {
                query?: {
                    disposition?: string;
                    decision?: string;
                    severity?: string;
                    flag?: string;
                    min_score?: number;
                    device_id?: string;
                    user_id?: string;
                    session_id?: string;
                    platform?: string;
                    country?: string;
                    asn?: string;
                    network?: string;
                    from?: string;
                    to?: string;
                    updated_after?: string;
                    limit?: number;
                    cursor?: string;
                    sdk_version?: string;
                    case_id?: string;
                    assignee?: "none" | string;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: {
                                alert_id: string;
                                tenant_id: string;
                                event_id: string;
                                seq: number;
                                decision: {
                                    action: "REVIEW" | "BLOCK";
                                    severity: "LOW" | "MEDIUM" | "HIGH" | "CRITICAL";
                                    risk_score: number;
                                };
                                rasp_score: number;
                                entity: {
                                    device: {
                                        device_id: string;
                                    };
                                    session: {
                                        session_id: string;
                                    };
                                    user?: {
                                        user_id: string;
                                    };
                                    phone: components["schemas"]["AlertPhone"] | null;
                                };
                                flags: components["schemas"]["Flag"][];
                                reasons: components["schemas"]["Reason"][];
                                disposition: components["schemas"]["Disposition"];
                                platform?: string;
                                sdk_version?: string;
                                app_version?: string;
                                device_model?: string;
                                connection: components["schemas"]["Connection"] | null;
                                created_at: string;
                                updated_at: string;
                                assignee: string | null;
                                notes: number;
                                case_id: string | null;
                            }[];
                            total: number;
                            limit: number;
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/alerts/counts": {
        get: {
            parameters: {
                query: {
                    disposition?: string;
                    decision?: string;
                    severity?: string;
                    flag?: string;
                    min_score?: number;
                    device_id?: string;
                    user_id?: string;
                    session_id?: string;
                    platform?: string;
                    country?: string;
                    asn?: string;
                    network?: string;
                    from?: string;
                    to?: string;
                    updated_after?: string;
                    sdk_version?: string;
                    case_id?: string;
                    assignee?: "none" | string;
                    by: "flag" | "sdk_version";
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: {
                                value: string;
                                alerts: number;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/alerts/{alert_id}": {
        get: {
            parameters: {
                path: {
                    alert_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            alert: {
                                alert_id: string;
                                tenant_id: string;
                                event_id: string;
                                seq: number;
                                decision: {
                                    action: "REVIEW" | "BLOCK";
                                    severity: "LOW" | "MEDIUM" | "HIGH" | "CRITICAL";
                                    risk_score: number;
                                };
                                rasp_score: number;
                                entity: {
                                    device: {
                                        device_id: string;
                                    };
                                    session: {
                                        session_id: string;
                                    };
                                    user?: {
                                        user_id: string;
                                    };
                                    phone: components["schemas"]["AlertPhone"] | null;
                                };
                                flags: components["schemas"]["Flag"][];
                                reasons: components["schemas"]["Reason"][];
                                disposition: components["schemas"]["Disposition"];
                                platform?: string;
                                sdk_version?: string;
                                app_version?: string;
                                device_model?: string;
                                connection: components["schemas"]["Connection"] | null;
                                created_at: string;
                                updated_at: string;
                                assignee: string | null;
                                notes: number;
                                case_id: string | null;
                            };
                            risk_percentile?: number;
                            policy_version: number;
                            notes: {
                                note_id: number;
                                author: string;
                                note: string;
                                at: string;
                            }[];
                            history: {
                                at: string;
                                actor: string;
                                from: "OPEN" | "REVIEWED" | "FALSE_POSITIVE" | "CONFIRMED";
                                to: "OPEN" | "REVIEWED" | "FALSE_POSITIVE" | "CONFIRMED";
                                note: string | null;
                                job_id: string | null;
                                undo: boolean;
                            }[];
                            assignments: {
                                at: string;
                                actor: string;
                                from: string | null;
                                to: string | null;
                                job_id: string | null;
                                undo: boolean;
                            }[];
                            others: {
                                device: {
                                    open: number;
                                    reviewed: number;
                                    false_positive: number;
                                    confirmed: number;
                                };
                                user: {
                                    open: number;
                                    reviewed: number;
                                    false_positive: number;
                                    confirmed: number;
                                } | null;
                            };
                            deliveries: components["schemas"]["Delivery"][];
                            explanation: components["schemas"]["EventExplanation"] | null;
                            unexplained: string | null;
                            now: {
                                active: {
                                    version: number;
                                    policy_hash: string;
                                    name: string;
                                    action: "ALLOW" | "REVIEW" | "BLOCK";
                                    risk_score: number;
                                    rasp_score: number;
                                    reasons: {
                                        code: string;
                                        weight: number;
                                        evidence: {
                                            [key: string]: unknown;
                                        };
                                    }[];
                                    risk_features: boolean;
                                } | null;
                                shadow: {
                                    version: number;
                                    policy_hash: string;
                                    name: string;
                                    action: "ALLOW" | "REVIEW" | "BLOCK";
                                    risk_score: number;
                                    rasp_score: number;
                                    reasons: {
                                        code: string;
                                        weight: number;
                                        evidence: {
                                            [key: string]: unknown;
                                        };
                                    }[];
                                    risk_features: boolean;
                                } | null;
                            };
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/alerts/{alert_id}/disposition": {
        post: {
            parameters: {
                path: {
                    alert_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        disposition: "OPEN" | "REVIEWED" | "FALSE_POSITIVE" | "CONFIRMED";
                        note?: string | null;
                        expected_disposition?: "OPEN" | "REVIEWED" | "FALSE_POSITIVE" | "CONFIRMED";
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            alert_id: string;
                            tenant_id: string;
                            event_id: string;
                            seq: number;
                            decision: {
                                action: "REVIEW" | "BLOCK";
                                severity: "LOW" | "MEDIUM" | "HIGH" | "CRITICAL";
                                risk_score: number;
                            };
                            rasp_score: number;
                            entity: {
                                device: {
                                    device_id: string;
                                };
                                session: {
                                    session_id: string;
                                };
                                user?: {
                                    user_id: string;
                                };
                                phone: components["schemas"]["AlertPhone"] | null;
                            };
                            flags: components["schemas"]["Flag"][];
                            reasons: components["schemas"]["Reason"][];
                            disposition: components["schemas"]["Disposition"];
                            platform?: string;
                            sdk_version?: string;
                            app_version?: string;
                            device_model?: string;
                            connection: components["schemas"]["Connection"] | null;
                            created_at: string;
                            updated_at: string;
                            assignee: string | null;
                            notes: number;
                            case_id: string | null;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/alerts/{alert_id}/assignee": {
        put: {
            parameters: {
                path: {
                    alert_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        assignee: string | null;
                        expected_assignee?: string | null;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            alert_id: string;
                            assignee: string | null;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/alerts/{alert_id}/notes": {
        post: {
            parameters: {
                path: {
                    alert_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        note: string;
                    };
                };
            };
            responses: {
                201: {
                    content: {
                        "application/json": {
                            note_id: number;
                            author: string;
                            note: string;
                            at: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/assignees": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: {
                                email: string;
                                name: string;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/alerts/bulk-disposition": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        filter?: {
                            disposition?: string;
                            decision?: string;
                            severity?: string;
                            flag?: string;
                            min_score?: number;
                            device_id?: string;
                            user_id?: string;
                            session_id?: string;
                            platform?: string;
                            country?: string;
                            asn?: string;
                            network?: string;
                            from?: string;
                            to?: string;
                            updated_after?: string;
                            sdk_version?: string;
                            case_id?: string;
                            assignee?: "none" | string;
                        };
                        alert_ids?: string[];
                        expected_count: number;
                        disposition: "OPEN" | "REVIEWED" | "FALSE_POSITIVE" | "CONFIRMED";
                        note?: string | null;
                    };
                };
            };
            responses: {
                202: {
                    content: {
                        "application/json": components["schemas"]["BulkJob"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/alerts/bulk-assign": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        filter?: {
                            disposition?: string;
                            decision?: string;
                            severity?: string;
                            flag?: string;
                            min_score?: number;
                            device_id?: string;
                            user_id?: string;
                            session_id?: string;
                            platform?: string;
                            country?: string;
                            asn?: string;
                            network?: string;
                            from?: string;
                            to?: string;
                            updated_after?: string;
                            sdk_version?: string;
                            case_id?: string;
                            assignee?: "none" | string;
                        };
                        alert_ids?: string[];
                        expected_count: number;
                        assignee: string | null;
                    };
                };
            };
            responses: {
                202: {
                    content: {
                        "application/json": components["schemas"]["BulkJob"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/bulk-jobs": {
        get: {
            parameters: {
                query?: {
                    limit?: number;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: components["schemas"]["BulkJob"][];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/bulk-jobs/{job_id}": {
        get: {
            parameters: {
                path: {
                    job_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["BulkJob"];
                    };
                };
            };
        };
    };
    "/admin/v1/bulk-jobs/{job_id}/cancel": {
        post: {
            parameters: {
                path: {
                    job_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["BulkJob"];
                    };
                };
            };
        };
    };
    "/admin/v1/bulk-jobs/{job_id}/undo": {
        post: {
            parameters: {
                path: {
                    job_id: string;
                };
            };
            responses: {
                202: {
                    content: {
                        "application/json": components["schemas"]["BulkJob"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/alerts.csv": {
        get: {
            parameters: {
                query?: {
                    disposition?: string;
                    decision?: string;
                    severity?: string;
                    flag?: string;
                    min_score?: number;
                    device_id?: string;
                    user_id?: string;
                    session_id?: string;
                    platform?: string;
                    country?: string;
                    asn?: string;
                    network?: string;
                    from?: string;
                    to?: string;
                    updated_after?: string;
                    sdk_version?: string;
                    case_id?: string;
                    assignee?: "none" | string;
                    form?: "plain" | "excel";
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "text/csv": string;
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/alerts/stream": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "text/event-stream": string;
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/cases": {
        get: {
            parameters: {
                query?: {
                    state?: string;
                    action?: string;
                    min_risk?: number;
                    flag?: string;
                    assignee?: ("none" | "me") | string;
                    subject_kind?: string;
                    breached?: "true" | "false";
                    begun_from?: string;
                    begun_to?: string;
                    q?: string;
                    sort?: "due" | "risk" | "latest";
                    limit?: number;
                    cursor?: string;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: components["schemas"]["CaseRow"][];
                            limit: number;
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/cases/counts": {
        get: {
            parameters: {
                query?: {
                    state?: string;
                    action?: string;
                    min_risk?: number;
                    flag?: string;
                    assignee?: ("none" | "me") | string;
                    subject_kind?: string;
                    breached?: "true" | "false";
                    begun_from?: string;
                    begun_to?: string;
                    q?: string;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            open: number;
                            snoozed: number;
                            closed: number;
                            breached: number;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/cases/next": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        filter?: {
                            action?: string;
                            min_risk?: number;
                            flag?: string;
                            assignee?: ("none" | "me") | string;
                            subject_kind?: string;
                            breached?: "true" | "false";
                            begun_from?: string;
                            begun_to?: string;
                            q?: string;
                        };
                        sort?: "due" | "risk" | "latest";
                        leave?: string;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            case: components["schemas"]["CaseRow"] | null;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/cases/{case_id}": {
        get: {
            parameters: {
                path: {
                    case_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["CaseDetail"];
                    };
                };
            };
        };
    };
    "/admin/v1/cases/{case_id}/judgement": {
        post: {
            parameters: {
                path: {
                    case_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        disposition: "REVIEWED" | "FALSE_POSITIVE" | "CONFIRMED";
                        note?: string | null;
                        expected_version?: number;
                        label?: {
                            label: string;
                            occurred_at?: string;
                            covered_days?: number;
                            amount?: string;
                            currency?: string;
                            external_id?: string;
                            note?: string;
                            on?: "device" | "user";
                        };
                        list?: {
                            list: "allow" | "deny";
                            reason: string;
                            expires_at?: string | null;
                            on?: "device" | "user";
                        };
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            case: components["schemas"]["Case"];
                            judged: number;
                            label_ids: string[];
                            entry_ids: string[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/cases/{case_id}/snooze": {
        put: {
            parameters: {
                path: {
                    case_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        until: string | null;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["Case"];
                    };
                };
            };
        };
    };
    "/admin/v1/cases/{case_id}/assignee": {
        put: {
            parameters: {
                path: {
                    case_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        assignee: string | null;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["Case"];
                    };
                };
            };
        };
    };
    "/admin/v1/cases/{case_id}/notes": {
        post: {
            parameters: {
                path: {
                    case_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        note: string;
                    };
                };
            };
            responses: {
                201: {
                    content: {
                        "application/json": {
                            note_id: number;
                            author: string;
                            note: string;
                            at: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/cases/{case_id}/merge": {
        post: {
            parameters: {
                path: {
                    case_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        into: string;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["Case"];
                    };
                };
            };
        };
    };
    "/admin/v1/cases/{case_id}/split": {
        post: {
            parameters: {
                path: {
                    case_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        alert_ids: string[];
                    };
                };
            };
            responses: {
                201: {
                    content: {
                        "application/json": {
                            case: components["schemas"]["Case"];
                            from: components["schemas"]["Case"];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/cases/{case_id}/presence": {
        put: {
            parameters: {
                path: {
                    case_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            here: {
                                operator: string;
                                since: string;
                            }[];
                        };
                    };
                };
            };
        };
        delete: {
            parameters: {
                path: {
                    case_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            here: {
                                operator: string;
                                since: string;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/case-rules": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["CaseRules"];
                    };
                };
            };
        };
        put: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        group_by: "phone" | "device" | "user";
                        reopen_days: number;
                        block_due_hours: number;
                        review_due_hours: number;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["CaseRules"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/saved-views": {
        get: {
            parameters: {
                query?: {
                    kind?: "cases" | "alerts" | "events" | "sql";
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: components["schemas"]["SavedView"][];
                        };
                    };
                };
            };
        };
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        kind: "cases" | "alerts" | "events" | "sql";
                        name: string;
                        query: {
                            [key: string]: string;
                        };
                        shared?: boolean;
                    };
                };
            };
            responses: {
                201: {
                    content: {
                        "application/json": components["schemas"]["SavedView"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/saved-views/{view_id}": {
        delete: {
            parameters: {
                path: {
                    tenant_id: string;
                    view_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            view_id: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/devices/{device_id}": {
        get: {
            parameters: {
                query?: {
                    sessions_limit?: number;
                    sessions_cursor?: string;
                };
                path: {
                    tenant_id: string;
                    device_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            device: {
                                device_id: string;
                                first_seen_at: string;
                                last_seen_at: string;
                                peak_rasp_score: number;
                                risk_score: number;
                                risk_percentile?: number;
                                platform?: string;
                                sdk_version?: string;
                                app_version?: string;
                                device_model?: string;
                                connection: components["schemas"]["Connection"] | null;
                                install: components["schemas"]["DeviceInstall"] | null;
                                phone?: components["schemas"]["DevicePhone"] | null;
                                users_seen_on: string[];
                                users_cursor: string | null;
                                sessions: components["schemas"]["DeviceSession"][];
                                sessions_total: number;
                                sessions_cursor: string | null;
                            };
                            alerts: {
                                total: number;
                                verdicts: {
                                    open: number;
                                    reviewed: number;
                                    false_positive: number;
                                    confirmed: number;
                                };
                                data: {
                                    alert_id: string;
                                    tenant_id: string;
                                    event_id: string;
                                    seq: number;
                                    decision: {
                                        action: "REVIEW" | "BLOCK";
                                        severity: "LOW" | "MEDIUM" | "HIGH" | "CRITICAL";
                                        risk_score: number;
                                    };
                                    rasp_score: number;
                                    entity: {
                                        device: {
                                            device_id: string;
                                        };
                                        session: {
                                            session_id: string;
                                        };
                                        user?: {
                                            user_id: string;
                                        };
                                        phone: components["schemas"]["AlertPhone"] | null;
                                    };
                                    flags: components["schemas"]["Flag"][];
                                    reasons: components["schemas"]["Reason"][];
                                    disposition: components["schemas"]["Disposition"];
                                    platform?: string;
                                    sdk_version?: string;
                                    app_version?: string;
                                    device_model?: string;
                                    connection: components["schemas"]["Connection"] | null;
                                    created_at: string;
                                    updated_at: string;
                                    assignee: string | null;
                                    notes: number;
                                    case_id: string | null;
                                }[];
                            };
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/users/{user_id}": {
        get: {
            parameters: {
                query?: {
                    devices_limit?: number;
                    devices_cursor?: string;
                };
                path: {
                    tenant_id: string;
                    user_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            user: components["schemas"]["User"];
                            sessions: components["schemas"]["UserSession"][];
                            alerts: {
                                total: number;
                                verdicts: {
                                    open: number;
                                    reviewed: number;
                                    false_positive: number;
                                    confirmed: number;
                                };
                                data: {
                                    alert_id: string;
                                    tenant_id: string;
                                    event_id: string;
                                    seq: number;
                                    decision: {
                                        action: "REVIEW" | "BLOCK";
                                        severity: "LOW" | "MEDIUM" | "HIGH" | "CRITICAL";
                                        risk_score: number;
                                    };
                                    rasp_score: number;
                                    entity: {
                                        device: {
                                            device_id: string;
                                        };
                                        session: {
                                            session_id: string;
                                        };
                                        user?: {
                                            user_id: string;
                                        };
                                        phone: components["schemas"]["AlertPhone"] | null;
                                    };
                                    flags: components["schemas"]["Flag"][];
                                    reasons: components["schemas"]["Reason"][];
                                    disposition: components["schemas"]["Disposition"];
                                    platform?: string;
                                    sdk_version?: string;
                                    app_version?: string;
                                    device_model?: string;
                                    connection: components["schemas"]["Connection"] | null;
                                    created_at: string;
                                    updated_at: string;
                                    assignee: string | null;
                                    notes: number;
                                    case_id: string | null;
                                }[];
                            };
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/devices/{device_id}/links": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                    device_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: {
                                id: string;
                                last_seen_at: string;
                                shared: {
                                    id: string;
                                    last_seen_at: string;
                                }[];
                                shared_total: number;
                                sessions: number;
                            }[];
                            alerts: {
                                kind: "device" | "user";
                                id: string;
                                risk_score: number;
                                open: number;
                                reviewed: number;
                                false_positive: number;
                                confirmed: number;
                            }[];
                            total: number;
                            followed: {
                                read: number;
                                of: number;
                            };
                            complete: boolean;
                            sessions_searched: boolean;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/users/{user_id}/links": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                    user_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: {
                                id: string;
                                last_seen_at: string;
                                shared: {
                                    id: string;
                                    last_seen_at: string;
                                }[];
                                shared_total: number;
                                sessions: number;
                            }[];
                            alerts: {
                                kind: "device" | "user";
                                id: string;
                                risk_score: number;
                                open: number;
                                reviewed: number;
                                false_positive: number;
                                confirmed: number;
                            }[];
                            total: number;
                            followed: {
                                read: number;
                                of: number;
                            };
                            complete: boolean;
                            sessions_searched: boolean;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/phones/{phone_id}": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                    phone_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            phone: {
                                phone_id: string;
                                first_seen_at: string;
                                last_seen_at: string;
                                risk_score: number;
                                installs: components["schemas"]["PhoneInstall"][];
                                installs_total: number;
                                users: components["schemas"]["PhoneUser"][];
                                users_total: number;
                            };
                            alerts: {
                                total: number;
                                verdicts: {
                                    open: number;
                                    reviewed: number;
                                    false_positive: number;
                                    confirmed: number;
                                };
                                data: {
                                    alert_id: string;
                                    tenant_id: string;
                                    event_id: string;
                                    seq: number;
                                    decision: {
                                        action: "REVIEW" | "BLOCK";
                                        severity: "LOW" | "MEDIUM" | "HIGH" | "CRITICAL";
                                        risk_score: number;
                                    };
                                    rasp_score: number;
                                    entity: {
                                        device: {
                                            device_id: string;
                                        };
                                        session: {
                                            session_id: string;
                                        };
                                        user?: {
                                            user_id: string;
                                        };
                                        phone: components["schemas"]["AlertPhone"] | null;
                                    };
                                    flags: components["schemas"]["Flag"][];
                                    reasons: components["schemas"]["Reason"][];
                                    disposition: components["schemas"]["Disposition"];
                                    platform?: string;
                                    sdk_version?: string;
                                    app_version?: string;
                                    device_model?: string;
                                    connection: components["schemas"]["Connection"] | null;
                                    created_at: string;
                                    updated_at: string;
                                    assignee: string | null;
                                    notes: number;
                                    case_id: string | null;
                                }[];
                            };
                            corrections: components["schemas"]["PhoneCorrection"][];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/phone-corrections": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        device_id: string;
                        phone_id: string | null;
                        reason: string;
                        expected_phone_id?: string;
                    };
                };
            };
            responses: {
                201: {
                    content: {
                        "application/json": components["schemas"]["PhoneCorrection"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/phone-corrections/{correction_id}/undo": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                    correction_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["PhoneCorrection"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/devices/{device_id}/signal-changes": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                    device_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            signals: {
                                signal: string;
                                first_detected_at: string;
                                first_session_id: string;
                                last_detected_at: string;
                                last_session_id: string;
                                state: ("detected" | "clean") | null;
                            }[];
                            data: {
                                at: string;
                                signal: string;
                                change: "appeared" | "went" | "returned";
                                event_id: string;
                                session_id: string;
                            }[];
                            total: number;
                            complete_from: string | null;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/devices/{device_id}/timeline": {
        get: {
            parameters: {
                query?: {
                    kinds?: string;
                    from?: string;
                    to?: string;
                    limit?: number;
                    cursor?: string;
                };
                path: {
                    tenant_id: string;
                    device_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: components["schemas"]["TimelineEntry"][];
                            limit: number;
                            next_cursor: string | null;
                            incomplete: {
                                kind: "event"
                                    | "signal"
                                    | "alert"
                                    | "delivery"
                                    | "assignment"
                                    | "note"
                                    | "case_note"
                                    | "disposition"
                                    | "label"
                                    | "list_entry"
                                    | "correction";
                                state: "unavailable" | "partial";
                                detail: string;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/users/{user_id}/timeline": {
        get: {
            parameters: {
                query?: {
                    kinds?: string;
                    from?: string;
                    to?: string;
                    limit?: number;
                    cursor?: string;
                };
                path: {
                    tenant_id: string;
                    user_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: components["schemas"]["TimelineEntry"][];
                            limit: number;
                            next_cursor: string | null;
                            incomplete: {
                                kind: "event"
                                    | "signal"
                                    | "alert"
                                    | "delivery"
                                    | "assignment"
                                    | "note"
                                    | "case_note"
                                    | "disposition"
                                    | "label"
                                    | "list_entry"
                                    | "correction";
                                state: "unavailable" | "partial";
                                detail: string;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/phones/{phone_id}/timeline": {
        get: {
            parameters: {
                query?: {
                    kinds?: string;
                    from?: string;
                    to?: string;
                    limit?: number;
                    cursor?: string;
                };
                path: {
                    tenant_id: string;
                    phone_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: components["schemas"]["TimelineEntry"][];
                            limit: number;
                            next_cursor: string | null;
                            incomplete: {
                                kind: "event"
                                    | "signal"
                                    | "alert"
                                    | "delivery"
                                    | "assignment"
                                    | "note"
                                    | "case_note"
                                    | "disposition"
                                    | "label"
                                    | "list_entry"
                                    | "correction";
                                state: "unavailable" | "partial";
                                detail: string;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/search": {
        get: {
            parameters: {
                query: {
                    q: string;
                    tenant_id?: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: {
                                kind: "tenant"
                                    | "alert"
                                    | "case"
                                    | "delivery"
                                    | "event"
                                    | "device"
                                    | "user"
                                    | "session"
                                    | "phone";
                                tenant_id: string;
                                id: string;
                            }[];
                            partial: boolean;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/overview": {
        get: {
            parameters: {
                query?: {
                    from?: string;
                    to?: string;
                    parts?: string;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            from: string;
                            to: string;
                            before_from: string;
                            step_seconds: number;
                            times: string[];
                            telemetry: {
                                events: {
                                    now: number;
                                    before: number;
                                };
                                devices: {
                                    now: number;
                                    before: number;
                                };
                                sessions: {
                                    now: number;
                                    before: number;
                                };
                                actions: {
                                    ALLOW: {
                                        now: number;
                                        before: number;
                                    };
                                    REVIEW: {
                                        now: number;
                                        before: number;
                                    };
                                    BLOCK: {
                                        now: number;
                                        before: number;
                                    };
                                };
                                connections: {
                                    measured: {
                                        now: number;
                                        before: number;
                                    };
                                    anonymous: {
                                        now: number;
                                        before: number;
                                    };
                                    hosting: {
                                        now: number;
                                        before: number;
                                    };
                                    countries: {
                                        now: number;
                                        before: number;
                                    };
                                };
                                top_flags: {
                                    flag: string;
                                    events: {
                                        now: number;
                                        before: number;
                                    };
                                    devices: {
                                        now: number;
                                        before: number;
                                    };
                                }[];
                                sdk_versions: {
                                    platform: string;
                                    sdk_version: string;
                                    events: {
                                        now: number;
                                        before: number;
                                    };
                                    devices: {
                                        now: number;
                                        before: number;
                                    };
                                }[];
                                lines: {
                                    events: {
                                        now: number[];
                                        before: number[];
                                    };
                                    REVIEW: {
                                        now: number[];
                                        before: number[];
                                    };
                                    BLOCK: {
                                        now: number[];
                                        before: number[];
                                    };
                                };
                                movers: {
                                    signal: string;
                                    devices: {
                                        now: number;
                                        before: number;
                                    };
                                    share: {
                                        now: number;
                                        before: number;
                                    };
                                }[] | null;
                                has_events: boolean;
                                last_event_at: string | null;
                            } | null;
                            outcomes: {
                                as_of: string | null;
                                fraud: number;
                                caught: number;
                                missed: number;
                                recall: {
                                    rate: number | null;
                                    low: number;
                                    high: number;
                                };
                                honest: number;
                                harmed: number;
                                harmed_users: number;
                                harmed_share: {
                                    rate: number | null;
                                    low: number;
                                    high: number;
                                };
                                losses: {
                                    currency: string;
                                    lost: string;
                                    caught: string;
                                    missed: string;
                                }[];
                            } | null;
                            alerts: {
                                raised: {
                                    now: number;
                                    before: number;
                                };
                                REVIEW: {
                                    now: number;
                                    before: number;
                                };
                                BLOCK: {
                                    now: number;
                                    before: number;
                                };
                                open: number;
                                open_by_age: {
                                    from: string | null;
                                    to: string | null;
                                    alerts: number;
                                }[];
                                line: {
                                    now: number[];
                                    before: number[];
                                };
                            };
                            cases: {
                                overdue: number;
                                ages: {
                                    from: string | null;
                                    to: string | null;
                                }[];
                                queues: {
                                    name: string;
                                    query: {
                                        [key: string]: string;
                                    };
                                    by_age: number[];
                                    overdue: number;
                                }[];
                            };
                            webhook: {
                                state: string;
                                off_reason: string | null;
                                failing_since: string | null;
                                last_failure: string | null;
                                deliveries: {
                                    state: string;
                                    count: {
                                        now: number;
                                        before: number;
                                    };
                                }[];
                            };
                            reconciliation: {
                                as_of: string | null;
                                lag_seconds: number | null;
                                agrees: boolean;
                                accepted: number;
                                stored: number;
                                decided: number;
                                alerts: number;
                                delivered: number;
                                differences: number;
                            } | null;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/deliveries": {
        get: {
            parameters: {
                query?: {
                    state?: "pending" | "sending" | "delivered" | "failed" | "skipped";
                    alert_id?: string;
                    event?: "risk.alert" | "alert.updated" | "webhook.test";
                    limit?: number;
                    cursor?: string;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: components["schemas"]["Delivery"][];
                            limit: number;
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/deliveries/{delivery_id}": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                    delivery_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["Delivery"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/deliveries/{delivery_id}/request": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                    delivery_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            delivery_id: string;
                            headers: {
                                [key: string]: string;
                            };
                            body: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/deliveries/replay-count": {
        get: {
            parameters: {
                query?: {
                    since?: string;
                    failed?: "true" | "false";
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            count: number;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/deliveries/replay": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        alert_id?: string;
                        since?: string;
                        failed?: boolean;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            replayed: number;
                            data: components["schemas"]["Delivery"][];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/deliveries/test": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                201: {
                    content: {
                        "application/json": components["schemas"]["Delivery"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/webhook/events": {
        put: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        events: ("risk.alert" | "alert.updated")[];
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            webhook_url: string | null;
                            webhook_events: ("risk.alert" | "alert.updated")[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/webhook/pause": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            webhook_url: string | null;
                            webhook_state: "on" | "off" | "paused";
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/webhook/resume": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            webhook_url: string | null;
                            webhook_state: "on" | "off" | "paused";
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/audit": {
        get: {
            parameters: {
                query?: {
                    limit?: number;
                    cursor?: string;
                    actor?: string;
                    action?: string;
                    from?: string;
                    to?: string;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: {
                                audit_id: number;
                                at: string;
                                actor: string;
                                tenant_id: string | null;
                                action: string;
                                before: unknown;
                                after: unknown;
                                written_by: string | null;
                            }[];
                            limit: number;
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/audit": {
        get: {
            parameters: {
                query?: {
                    limit?: number;
                    cursor?: string;
                    actor?: string;
                    action?: string;
                    from?: string;
                    to?: string;
                    tenants?: "none" | "all";
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: {
                                audit_id: number;
                                at: string;
                                actor: string;
                                tenant_id: string | null;
                                action: string;
                                before: unknown;
                                after: unknown;
                                written_by: string | null;
                            }[];
                            limit: number;
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/edges": {
        get: {
            responses: {
                200: {
                    content: {
                        "application/json": {
                            revision: number;
                            data: {
                                edge_id: string;
                                applied_revision: number;
                                announced_at: string;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/network": {
        get: {
            responses: {
                200: {
                    content: {
                        "application/json": {
                            is_on: boolean;
                            data: {
                                file: string;
                                state: "in_use" | "older_in_use" | "broken";
                                fault: string | null;
                                gives: ("country"
                                    | "coordinates"
                                    | "asn"
                                    | "organization"
                                    | "tor"
                                    | "vpn"
                                    | "hosting"
                                    | "proxy"
                                    | "relay"
                                    | "mobile")[];
                                networks: number | null;
                                bytes: number | null;
                                built_at: string | null;
                                read_at: string | null;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/devices/{device_id}/network": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                    device_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            connection: components["schemas"]["Connection"] | null;
                            data: {
                                device_id: string;
                                last_seen_at: string;
                                risk_score: number;
                                on_network_at: string;
                            }[];
                            total: number;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/fleet/networks": {
        get: {
            parameters: {
                query?: {
                    from?: string;
                    to?: string;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            from: string;
                            to: string;
                            events: number;
                            measured: number;
                            countries: {
                                country: string;
                                networks: number;
                                events: number;
                                blocked: number;
                                devices: number;
                            }[];
                            networks: {
                                connection: components["schemas"]["Connection"];
                                events: number;
                                blocked: number;
                                devices: number;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/addresses": {
        get: {
            responses: {
                200: {
                    content: {
                        "application/json": {
                            ingest_url: string | null;
                            api_url: string | null;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/reconciliation": {
        get: {
            parameters: {
                query?: {
                    from?: string;
                    to?: string;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["Ledger"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/policy": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            version: number;
                            policy_hash: string;
                            name: string;
                            created_at: string;
                            created_by: string;
                            reason: string | null;
                            approved_by: string | null;
                            in_force: boolean;
                            document: unknown;
                        };
                    };
                };
            };
        };
        put: {
            parameters: {
                query?: {
                    if_version?: number;
                    reason?: string;
                };
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": unknown;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            version: number;
                            policy_hash: string;
                            name: string;
                            previous_version: number;
                            duration_ms: number;
                            confirmed_edges: string[];
                            lease_expired_edges: string[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/policy/versions": {
        get: {
            parameters: {
                query?: {
                    limit?: number;
                    cursor?: string;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: {
                                version: number;
                                policy_hash: string;
                                name: string;
                                created_at: string;
                                created_by: string;
                                reason: string | null;
                                approved_by: string | null;
                                in_force: boolean;
                            }[];
                            limit: number;
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/policy/versions/{version}": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                    version: number;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            version: number;
                            policy_hash: string;
                            name: string;
                            created_at: string;
                            created_by: string;
                            reason: string | null;
                            approved_by: string | null;
                            in_force: boolean;
                            document: unknown;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/policy-presets": {
        get: {
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: {
                                name: string;
                                policy_hash: string;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/policy-presets/{name}": {
        get: {
            parameters: {
                path: {
                    name: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            name: string;
                            policy_hash: string;
                            document: unknown;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/policy.schema.json": {
        get: {
            responses: {
                200: {
                    content: {
                        "application/schema+json": unknown;
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/policy/check": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": unknown;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            valid: boolean;
                            policy_hash: string | null;
                            errors: {
                                path: string;
                                message: string;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/drafts": {
        get: {
            parameters: {
                query?: {
                    limit?: number;
                    cursor?: string;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: {
                                draft_id: string;
                                tenant_id: string;
                                name: string | null;
                                comment: string;
                                base_version: number;
                                in_force_version: number;
                                revision: number;
                                created_by: string;
                                created_at: string;
                                updated_by: string;
                                updated_at: string;
                            }[];
                            limit: number;
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        text: string;
                        comment?: string;
                        base_version: number;
                    };
                };
            };
            responses: {
                201: {
                    content: {
                        "application/json": components["schemas"]["PolicyDraft"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/drafts/{draft_id}": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                    draft_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["PolicyDraft"];
                    };
                };
            };
        };
        put: {
            parameters: {
                path: {
                    tenant_id: string;
                    draft_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        text: string;
                        comment?: string;
                        base_version: number;
                        revision: number;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["PolicyDraft"];
                    };
                };
            };
        };
        delete: {
            parameters: {
                path: {
                    tenant_id: string;
                    draft_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            draft_id: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/drafts/{draft_id}/publish": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                    draft_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        reason: string;
                        revision: number;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            version: number;
                            policy_hash: string;
                            name: string;
                            previous_version: number;
                            duration_ms: number;
                            confirmed_edges: string[];
                            lease_expired_edges: string[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/four-eyes": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            enabled: boolean;
                            bulk_above: number;
                        };
                    };
                };
            };
        };
        put: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        enabled: boolean;
                        bulk_above?: number;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            enabled: boolean;
                            bulk_above: number;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/proposals": {
        get: {
            parameters: {
                query?: {
                    limit?: number;
                    cursor?: string;
                    state?: "open" | "all";
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: {
                                proposal_id: string;
                                tenant_id: string;
                                kind: "policy"
                                    | "rotation"
                                    | "install_root"
                                    | "erasure"
                                    | "bulk"
                                    | "bulk_undo"
                                    | "four_eyes"
                                    | "api_key"
                                    | "retention"
                                    | "wide_list_entry"
                                    | "suspension"
                                    | "shared_secret";
                                summary: string;
                                reason: string;
                                author: string;
                                state: "open"
                                    | "approved"
                                    | "rejected"
                                    | "withdrawn"
                                    | "void"
                                    | "failed"
                                    | "expired";
                                may_approve: boolean;
                                created_at: string;
                                expires_at: string;
                                ended_at: string | null;
                                ended_by: string | null;
                                note: string | null;
                            }[];
                            limit: number;
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        kind: "policy";
                        reason: string;
                        expires_in_days?: number;
                        document?: unknown;
                        draft_id?: string;
                    } | {
                        kind: "rotation";
                        reason: string;
                        expires_in_days?: number;
                        credentials?: {
                            hmac?: boolean;
                            webhook?: boolean;
                            api_key?: boolean;
                        } | null;
                    } | {
                        kind: "install_root";
                        reason: string;
                        expires_in_days?: number;
                        action: "rotate" | "drop_previous";
                    } | {
                        kind: "erasure";
                        reason: string;
                        expires_in_days?: number;
                        subject: {
                            device_id?: string;
                            user_id?: string;
                        };
                    } | {
                        kind: "bulk";
                        reason: string;
                        expires_in_days?: number;
                        change: {
                            filter?: {
                                disposition?: string;
                                decision?: string;
                                severity?: string;
                                flag?: string;
                                min_score?: number;
                                device_id?: string;
                                user_id?: string;
                                session_id?: string;
                                platform?: string;
                                country?: string;
                                asn?: string;
                                network?: string;
                                from?: string;
                                to?: string;
                                updated_after?: string;
                                sdk_version?: string;
                                case_id?: string;
                                assignee?: "none" | string;
                            };
                            alert_ids?: string[];
                            expected_count: number;
                            disposition: "OPEN" | "REVIEWED" | "FALSE_POSITIVE" | "CONFIRMED";
                            note?: string | null;
                        } | {
                            filter?: {
                                disposition?: string;
                                decision?: string;
                                severity?: string;
                                flag?: string;
                                min_score?: number;
                                device_id?: string;
                                user_id?: string;
                                session_id?: string;
                                platform?: string;
                                country?: string;
                                asn?: string;
                                network?: string;
                                from?: string;
                                to?: string;
                                updated_after?: string;
                                sdk_version?: string;
                                case_id?: string;
                                assignee?: "none" | string;
                            };
                            alert_ids?: string[];
                            expected_count: number;
                            assignee: string | null;
                        };
                    } | {
                        kind: "bulk_undo";
                        reason: string;
                        expires_in_days?: number;
                        job_id: string;
                    } | {
                        kind: "four_eyes";
                        reason: string;
                        expires_in_days?: number;
                        setting: {
                            enabled: boolean;
                            bulk_above?: number;
                        };
                    } | {
                        kind: "api_key";
                        reason: string;
                        expires_in_days?: number;
                        key: {
                            name?: string;
                            scopes: ("read" | "alerts:write" | "lists:write" | "labels:write")[];
                        };
                    } | {
                        kind: "retention";
                        reason: string;
                        expires_in_days?: number;
                        periods: {
                            events?: number | ("default" | "forever");
                            alerts?: number | ("default" | "forever");
                            deliveries?: number | ("default" | "forever");
                        };
                    } | {
                        kind: "wide_list_entry";
                        reason: string;
                        expires_in_days?: number;
                        entry: {
                            list: "allow" | "deny";
                            kind: "device" | "user" | "network" | "asn" | "country";
                            id: string;
                            reason: string;
                            expires_at?: string | null;
                        };
                    } | {
                        kind: "suspension";
                        reason: string;
                        expires_in_days?: number;
                    } | {
                        kind: "shared_secret";
                        reason: string;
                        expires_in_days?: number;
                        off: boolean;
                    };
                };
            };
            responses: {
                201: {
                    content: {
                        "application/json": components["schemas"]["Proposal"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/proposals/{proposal_id}": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                    proposal_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["Proposal"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/proposals/{proposal_id}/approve": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                    proposal_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            proposal: components["schemas"]["Proposal"];
                            result: unknown;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/proposals/{proposal_id}/reject": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                    proposal_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        note?: string;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["Proposal"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/proposals/{proposal_id}/withdraw": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                    proposal_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["Proposal"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/policy/backtest": {
        post: {
            parameters: {
                query?: {
                    since?: string;
                };
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": unknown;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/x-ndjson": {
                            progress: {
                                slices_done: number;
                                slices: number;
                                devices: ({
                                    from: string | null;
                                    to: string | null;
                                } | "test devices") | null;
                                events_done: number;
                                events: number;
                                elapsed_ms: number;
                            };
                        } | {
                            report: {
                                tenant_id: string;
                                since: string | null;
                                policy: {
                                    name: string;
                                    policy_hash: string;
                                };
                                events: number;
                                sessions: number;
                                matrix: {
                                    [key: string]: {
                                        [key: string]: number;
                                    };
                                };
                                alerts: {
                                    before: number;
                                    after: number;
                                };
                                by_action: {
                                    [key: string]: {
                                        before: number;
                                        after: number;
                                    };
                                };
                                changes: {
                                    new: number;
                                    gone: number;
                                    stricter: number;
                                    milder: number;
                                    unchanged: number;
                                };
                                by_disposition: {
                                    name: string;
                                    before: number;
                                    lost: number;
                                    may_stay: number;
                                }[];
                                by_platform: {
                                    name: string;
                                    new: number;
                                    gone: number;
                                    stricter: number;
                                    milder: number;
                                    unchanged: number;
                                }[];
                                by_sdk_version: {
                                    name: string;
                                    new: number;
                                    gone: number;
                                    stricter: number;
                                    milder: number;
                                    unchanged: number;
                                }[];
                                by_flag: {
                                    name: string;
                                    new: number;
                                    gone: number;
                                    stricter: number;
                                    milder: number;
                                    unchanged: number;
                                }[];
                                correlated: {
                                    alerts: number;
                                    by_action: {
                                        [key: string]: number;
                                    };
                                    by_disposition: {
                                        [key: string]: number;
                                    };
                                    may_stay: number;
                                    exist_already: number;
                                };
                                outcomes: {
                                    as_of: string | null;
                                    before: {
                                        fraud: number;
                                        caught: number;
                                        missed: number;
                                        recall: {
                                            rate: number | null;
                                            low: number;
                                            high: number;
                                        };
                                        honest: number;
                                        harmed: number;
                                        harmed_users: number;
                                        harmed_share: {
                                            rate: number | null;
                                            low: number;
                                            high: number;
                                        };
                                        losses: {
                                            currency: string;
                                            lost: string;
                                            caught: string;
                                            missed: string;
                                        }[];
                                    };
                                    after: {
                                        fraud: number;
                                        caught: number;
                                        missed: number;
                                        recall: {
                                            rate: number | null;
                                            low: number;
                                            high: number;
                                        };
                                        honest: number;
                                        harmed: number;
                                        harmed_users: number;
                                        harmed_share: {
                                            rate: number | null;
                                            low: number;
                                            high: number;
                                        };
                                        losses: {
                                            currency: string;
                                            lost: string;
                                            caught: string;
                                            missed: string;
                                        }[];
                                    };
                                    fraud_lost: number;
                                    fraud_gained: number;
                                    honest_spared: number;
                                    honest_newly_harmed: number;
                                };
                                moved_most: {
                                    device_id: string;
                                    session_id: string;
                                    old_score: number;
                                    new_score: number;
                                }[];
                                recomputed: {
                                    events: number;
                                    different: number;
                                    first: string[];
                                };
                                scored_by: {
                                    policy_hash: string;
                                    events: number;
                                    name: string;
                                }[];
                                not_recomputed: {
                                    policy_hash: string;
                                    events: number;
                                    why: "not_stored" | "too_many";
                                }[];
                                duration_ms: number;
                            };
                        } | {
                            problem: {
                                code: string;
                                detail: string;
                            } & {
                                [key: string]: unknown;
                            };
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/policy/suggestion": {
        post: {
            parameters: {
                query?: {
                    days?: number;
                    caps?: "true" | "false";
                    floors?: "true" | "false";
                    seed?: number;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/x-ndjson": {
                            progress: {
                                slices_done: number;
                                slices: number;
                            };
                        } | {
                            report: {
                                tenant_id: string;
                                as_of: string;
                                since: string;
                                newer_since: string | null;
                                active: {
                                    name: string;
                                    version: number;
                                    policy_hash: string;
                                };
                                sessions: number;
                                left_out: number;
                                refused: {
                                    missing: {
                                        what: string;
                                        have: number;
                                        need: number;
                                    }[];
                                } | null;
                                suggestion: {
                                    policy: {
                                        schema: 1;
                                        name: string;
                                        thresholds: {
                                            review: number;
                                            block: number;
                                        };
                                        categories: {
                                            root: {
                                                cap: number;
                                                signals: {
                                                    [key: string]: number | {
                                                        whenFalse: number;
                                                    } | {
                                                        atLeast: number;
                                                        weight: number;
                                                    } | {
                                                        values: {
                                                            [key: string]: number;
                                                        };
                                                        unless?: string[];
                                                    };
                                                };
                                                groups?: {
                                                    cap: number;
                                                    signals: string[];
                                                }[];
                                            };
                                            emulator: {
                                                cap: number;
                                                signals: {
                                                    [key: string]: number | {
                                                        whenFalse: number;
                                                    } | {
                                                        atLeast: number;
                                                        weight: number;
                                                    } | {
                                                        values: {
                                                            [key: string]: number;
                                                        };
                                                        unless?: string[];
                                                    };
                                                };
                                                groups?: {
                                                    cap: number;
                                                    signals: string[];
                                                }[];
                                            };
                                            debugger: {
                                                cap: number;
                                                signals: {
                                                    [key: string]: number | {
                                                        whenFalse: number;
                                                    } | {
                                                        atLeast: number;
                                                        weight: number;
                                                    } | {
                                                        values: {
                                                            [key: string]: number;
                                                        };
                                                        unless?: string[];
                                                    };
                                                };
                                                groups?: {
                                                    cap: number;
                                                    signals: string[];
                                                }[];
                                            };
                                            tamper: {
                                                cap: number;
                                                signals: {
                                                    [key: string]: number | {
                                                        whenFalse: number;
                                                    } | {
                                                        atLeast: number;
                                                        weight: number;
                                                    } | {
                                                        values: {
                                                            [key: string]: number;
                                                        };
                                                        unless?: string[];
                                                    };
                                                };
                                                groups?: {
                                                    cap: number;
                                                    signals: string[];
                                                }[];
                                            };
                                            ecosystem: {
                                                cap: number;
                                                signals: {
                                                    [key: string]: number | {
                                                        whenFalse: number;
                                                    } | {
                                                        atLeast: number;
                                                        weight: number;
                                                    } | {
                                                        values: {
                                                            [key: string]: number;
                                                        };
                                                        unless?: string[];
                                                    };
                                                };
                                                groups?: {
                                                    cap: number;
                                                    signals: string[];
                                                }[];
                                            };
                                            network: {
                                                cap: number;
                                                signals: {
                                                    [key: string]: number | {
                                                        whenFalse: number;
                                                    } | {
                                                        atLeast: number;
                                                        weight: number;
                                                    } | {
                                                        values: {
                                                            [key: string]: number;
                                                        };
                                                        unless?: string[];
                                                    };
                                                };
                                                groups?: {
                                                    cap: number;
                                                    signals: string[];
                                                }[];
                                            };
                                        };
                                        serverCategories?: {
                                            attestation?: {
                                                cap: number;
                                                signals: {
                                                    [key: string]: number | {
                                                        whenFalse: number;
                                                    } | {
                                                        atLeast: number;
                                                        weight: number;
                                                    } | {
                                                        values: {
                                                            [key: string]: number;
                                                        };
                                                        unless?: string[];
                                                    };
                                                };
                                                groups?: {
                                                    cap: number;
                                                    signals: string[];
                                                }[];
                                            };
                                            connection?: {
                                                cap: number;
                                                signals: {
                                                    [key: string]: number | {
                                                        whenFalse: number;
                                                    } | {
                                                        atLeast: number;
                                                        weight: number;
                                                    } | {
                                                        values: {
                                                            [key: string]: number;
                                                        };
                                                        unless?: string[];
                                                    };
                                                };
                                                groups?: {
                                                    cap: number;
                                                    signals: string[];
                                                }[];
                                            };
                                        };
                                        halving: {
                                            category: "root"
                                                | "emulator"
                                                | "debugger"
                                                | "tamper"
                                                | "ecosystem"
                                                | "network";
                                            confirmedBy: string[];
                                        }[];
                                        strongEvidence: {
                                            signals: number;
                                        } | null;
                                        floors: {
                                            score: number;
                                            signals: string[];
                                            need?: "any" | "all";
                                            values?: string[];
                                            pastSoftLimit?: boolean;
                                        }[];
                                        softCategories: ("root"
                                            | "emulator"
                                            | "debugger"
                                            | "tamper"
                                            | "ecosystem"
                                            | "network"
                                            | "attestation"
                                            | "connection")[];
                                        signals?: {
                                            [key: string]: {
                                                type: "boolean" | "number" | "string" | "strings";
                                                description?: string;
                                            };
                                        };
                                        trustedInstallers?: {
                                            packages: string[];
                                            silences?: string[];
                                        };
                                        requiredSignals?: {
                                            signals: string[];
                                            weight: number;
                                        };
                                        suppressions: {
                                            signals: string[];
                                            sdkVersions?: string[];
                                            platforms?: string[];
                                            expiresAt: string | null;
                                            reason: string;
                                        }[];
                                        velocity: {
                                            metric: "sessions_per_device"
                                                | "users_per_device"
                                                | "platforms_per_device"
                                                | "signal_flips"
                                                | "devices_per_user"
                                                | "devices_per_session"
                                                | "new_device_of_user"
                                                | "countries_per_user"
                                                | "countries_per_device"
                                                | "networks_per_device"
                                                | "devices_per_network"
                                                | "users_per_network"
                                                | "impossible_travel"
                                                | "installs_per_phone"
                                                | "users_per_phone";
                                            windowSeconds: number;
                                            threshold: number;
                                            weight: number;
                                            steps?: {
                                                above: number;
                                                weight: number;
                                            }[];
                                        }[];
                                        correlationAloneMax: "REVIEW" | "BLOCK";
                                        scoreMismatch: {
                                            threshold: number;
                                            weight: number;
                                        } | null;
                                        signalsMissing: {
                                            threshold: number;
                                            usualShare: number;
                                            devicesMin: number;
                                            weight: number;
                                        } | null;
                                    };
                                    weights: {
                                        feature: string;
                                        before: number;
                                        after: number;
                                        why: "weighed" | "useless" | "too_few";
                                        support: {
                                            fraud: number;
                                            legitimate: number;
                                            unlabelled: number;
                                            judged: number;
                                        };
                                        effect: {
                                            log_odds: number;
                                            low: number;
                                            high: number;
                                        } | null;
                                        points: {
                                            low: number;
                                            high: number;
                                        } | null;
                                    }[];
                                    factor: number;
                                    thresholds: {
                                        before: {
                                            review: number;
                                            block: number;
                                        };
                                        after: {
                                            review: number;
                                            block: number;
                                        };
                                    };
                                    totals: {
                                        older: {
                                            fraud: number;
                                            legitimate: number;
                                            unlabelled: number;
                                            judged: number;
                                        };
                                        newer: {
                                            fraud: number;
                                            legitimate: number;
                                            unlabelled: number;
                                            judged: number;
                                        };
                                    };
                                    days: {
                                        older: number;
                                        newer: number;
                                    };
                                    compared: {
                                        active: {
                                            review: {
                                                threshold: number;
                                                alerts: number;
                                                alerts_a_day: number;
                                                caught: number;
                                                missed: number;
                                                harmed: number;
                                                recall: {
                                                    rate: number | null;
                                                    low: number;
                                                    high: number;
                                                };
                                                precision: {
                                                    rate: number | null;
                                                    low: number;
                                                    high: number;
                                                };
                                                harm: {
                                                    rate: number | null;
                                                    low: number;
                                                    high: number;
                                                };
                                                harmed_users: number;
                                                losses: {
                                                    currency: string;
                                                    lost: string;
                                                    caught: string;
                                                    missed: string;
                                                }[];
                                            };
                                            block: {
                                                threshold: number;
                                                alerts: number;
                                                alerts_a_day: number;
                                                caught: number;
                                                missed: number;
                                                harmed: number;
                                                recall: {
                                                    rate: number | null;
                                                    low: number;
                                                    high: number;
                                                };
                                                precision: {
                                                    rate: number | null;
                                                    low: number;
                                                    high: number;
                                                };
                                                harm: {
                                                    rate: number | null;
                                                    low: number;
                                                    high: number;
                                                };
                                                harmed_users: number;
                                                losses: {
                                                    currency: string;
                                                    lost: string;
                                                    caught: string;
                                                    missed: string;
                                                }[];
                                            };
                                            at_equal_alerts: {
                                                caught: number;
                                                harmed: number;
                                                recall: number;
                                                precision: number;
                                                recall_range: {
                                                    low: number;
                                                    high: number;
                                                };
                                            };
                                            deciles: {
                                                from: number;
                                                to: number;
                                                sessions: number;
                                                expected: number;
                                                observed: {
                                                    rate: number | null;
                                                    low: number;
                                                    high: number;
                                                };
                                            }[];
                                        };
                                        suggested: {
                                            review: {
                                                threshold: number;
                                                alerts: number;
                                                alerts_a_day: number;
                                                caught: number;
                                                missed: number;
                                                harmed: number;
                                                recall: {
                                                    rate: number | null;
                                                    low: number;
                                                    high: number;
                                                };
                                                precision: {
                                                    rate: number | null;
                                                    low: number;
                                                    high: number;
                                                };
                                                harm: {
                                                    rate: number | null;
                                                    low: number;
                                                    high: number;
                                                };
                                                harmed_users: number;
                                                losses: {
                                                    currency: string;
                                                    lost: string;
                                                    caught: string;
                                                    missed: string;
                                                }[];
                                            };
                                            block: {
                                                threshold: number;
                                                alerts: number;
                                                alerts_a_day: number;
                                                caught: number;
                                                missed: number;
                                                harmed: number;
                                                recall: {
                                                    rate: number | null;
                                                    low: number;
                                                    high: number;
                                                };
                                                precision: {
                                                    rate: number | null;
                                                    low: number;
                                                    high: number;
                                                };
                                                harm: {
                                                    rate: number | null;
                                                    low: number;
                                                    high: number;
                                                };
                                                harmed_users: number;
                                                losses: {
                                                    currency: string;
                                                    lost: string;
                                                    caught: string;
                                                    missed: string;
                                                }[];
                                            };
                                            at_equal_alerts: {
                                                caught: number;
                                                harmed: number;
                                                recall: number;
                                                precision: number;
                                                recall_range: {
                                                    low: number;
                                                    high: number;
                                                };
                                            };
                                            deciles: {
                                                from: number;
                                                to: number;
                                                sessions: number;
                                                expected: number;
                                                observed: {
                                                    rate: number | null;
                                                    low: number;
                                                    high: number;
                                                };
                                            }[];
                                        };
                                        alerts: number;
                                        recall_gained: number;
                                        recall_gained_range: {
                                            low: number;
                                            high: number;
                                        };
                                    };
                                    rules: {
                                        features: string[];
                                        found: {
                                            fraud: number;
                                            labelled: number;
                                            precision: {
                                                rate: number | null;
                                                low: number;
                                                high: number;
                                            };
                                        };
                                        tested: {
                                            fraud: number;
                                            labelled: number;
                                            precision: {
                                                rate: number | null;
                                                low: number;
                                                high: number;
                                            };
                                            recall: {
                                                rate: number | null;
                                                low: number;
                                                high: number;
                                            };
                                            alerts_a_week: number;
                                        };
                                        floor: {
                                            signals: string[];
                                            need: "any" | "all";
                                            least: {
                                                [key: string]: 1 | {
                                                    whenFalse: 1;
                                                };
                                            };
                                        } | null;
                                        group: {
                                            category: string;
                                            signals: string[];
                                        } | null;
                                    }[];
                                    warnings: {
                                        kind: "leak"
                                            | "separation"
                                            | "drift"
                                            | "no_better"
                                            | "few_newer";
                                        feature: string | null;
                                        detail: string;
                                    }[];
                                    seed: number;
                                } | null;
                            };
                        } | {
                            problem: {
                                code: string;
                                detail: string;
                            } & {
                                [key: string]: unknown;
                            };
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/policy/scores": {
        get: {
            parameters: {
                query?: {
                    days?: number;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            as_of: string | null;
                            since: string;
                            until: string;
                            days: number;
                            counts: {
                                fraud: number[];
                                legitimate: number[];
                                unlabelled: number[];
                            };
                            honest_users: number[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/policy/shadow": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            version: number;
                            policy_hash: string | null;
                            name: string | null;
                            effective_at: string;
                            created_at: string;
                            created_by: string;
                            document: unknown;
                        };
                    };
                };
            };
        };
        put: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": unknown;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            version: number;
                            policy_hash: string | null;
                            name: string | null;
                            effective_at: string;
                            created_at: string;
                            created_by: string;
                            previous_version: number;
                        };
                    };
                };
            };
        };
        delete: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            version: number;
                            policy_hash: string | null;
                            name: string | null;
                            effective_at: string;
                            created_at: string;
                            created_by: string;
                            previous_version: number;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/policy/shadow/comparison": {
        get: {
            parameters: {
                query?: {
                    since?: string;
                    version?: number;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            shadow: {
                                version: number;
                                versions: number[];
                                policy_hash: string;
                                name: string | null;
                            };
                            since: string | null;
                            first_event_at: string | null;
                            last_event_at: string | null;
                            events: number;
                            sessions: number;
                            matrix: {
                                [key: string]: {
                                    [key: string]: number;
                                };
                            };
                            alerts: {
                                active: number;
                                shadow: number;
                            };
                            by_action: {
                                [key: string]: {
                                    active: number;
                                    shadow: number;
                                };
                            };
                            changes: {
                                new: number;
                                gone: number;
                                stricter: number;
                                milder: number;
                                unchanged: number;
                            };
                            by_platform: {
                                name: string;
                                new: number;
                                gone: number;
                                stricter: number;
                                milder: number;
                                unchanged: number;
                            }[];
                            by_sdk_version: {
                                name: string;
                                new: number;
                                gone: number;
                                stricter: number;
                                milder: number;
                                unchanged: number;
                            }[];
                            by_flag: {
                                name: string;
                                new: number;
                                gone: number;
                                stricter: number;
                                milder: number;
                                unchanged: number;
                            }[];
                            by_disposition: {
                                name: string;
                                kept: number;
                                lost: number;
                            }[];
                            outcomes: {
                                as_of: string | null;
                                active: {
                                    fraud: number;
                                    caught: number;
                                    missed: number;
                                    recall: {
                                        rate: number | null;
                                        low: number;
                                        high: number;
                                    };
                                    honest: number;
                                    harmed: number;
                                    harmed_users: number;
                                    harmed_share: {
                                        rate: number | null;
                                        low: number;
                                        high: number;
                                    };
                                    losses: {
                                        currency: string;
                                        lost: string;
                                        caught: string;
                                        missed: string;
                                    }[];
                                };
                                shadow: {
                                    fraud: number;
                                    caught: number;
                                    missed: number;
                                    recall: {
                                        rate: number | null;
                                        low: number;
                                        high: number;
                                    };
                                    honest: number;
                                    harmed: number;
                                    harmed_users: number;
                                    harmed_share: {
                                        rate: number | null;
                                        low: number;
                                        high: number;
                                    };
                                    losses: {
                                        currency: string;
                                        lost: string;
                                        caught: string;
                                        missed: string;
                                    }[];
                                };
                                fraud_lost: number;
                                fraud_gained: number;
                                honest_spared: number;
                                honest_newly_harmed: number;
                            };
                            moved_most: {
                                device_id: string;
                                session_id: string;
                                active_score: number;
                                shadow_score: number;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/events/{event_id}/body": {
        get: {
            parameters: {
                path: {
                    event_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            event_id: string;
                            tenant_id: string;
                            body: string;
                            intact: boolean | null;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/events/{event_id}/explanation": {
        get: {
            parameters: {
                path: {
                    event_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["EventExplanation"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/events": {
        get: {
            parameters: {
                query?: {
                    from?: string;
                    to?: string;
                    device_id?: string;
                    user_id?: string;
                    session_id?: string;
                    flag?: string;
                    action?: string;
                    signal?: string;
                    signal_value?: string;
                    platform?: string;
                    app_version?: string;
                    sdk_version?: string;
                    country?: string;
                    asn?: string;
                    network?: string;
                    network_kind?: string;
                    min_score?: number;
                    max_score?: number;
                    limit?: number;
                    cursor?: string;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["EventPage"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/events/counts": {
        get: {
            parameters: {
                query: {
                    from?: string;
                    to?: string;
                    device_id?: string;
                    user_id?: string;
                    session_id?: string;
                    flag?: string;
                    action?: string;
                    signal?: string;
                    signal_value?: string;
                    platform?: string;
                    app_version?: string;
                    sdk_version?: string;
                    country?: string;
                    asn?: string;
                    network?: string;
                    network_kind?: string;
                    min_score?: number;
                    max_score?: number;
                    by: "action"
                        | "flag"
                        | "signal"
                        | "signal_value"
                        | "app_version"
                        | "sdk_version"
                        | "platform"
                        | "country"
                        | "asn"
                        | "network_kind"
                        | "score";
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["EventCounts"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/signals": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["SignalList"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/unknown-signals": {
        get: {
            parameters: {
                query?: {
                    days?: number;
                    limit?: number;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            days: number;
                            left_out: {
                                events: number;
                                values: number;
                            };
                            names: {
                                in_last_hour: number;
                                limit: number;
                                freed_at: string | null;
                            };
                            data: {
                                signal: string;
                                sdk_version: string;
                                platform: string;
                                events: number;
                                devices: number;
                                first_seen_at: string;
                                last_seen_at: string;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/unknown-signals/free": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            freed_at: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/rule-performance": {
        get: {
            parameters: {
                query?: {
                    since?: string;
                    until?: string;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            since: string | null;
                            alerts: number;
                            confirmed: number;
                            false_positive: number;
                            base_precision: number | null;
                            flags: {
                                what: string;
                                alerts: number;
                                confirmed: number;
                                false_positive: number;
                                precision: number | null;
                                precision_low: number;
                                precision_high: number;
                                lift: number | null;
                            }[];
                            reasons: {
                                what: string;
                                alerts: number;
                                confirmed: number;
                                false_positive: number;
                                precision: number | null;
                                precision_low: number;
                                precision_high: number;
                                lift: number | null;
                            }[];
                            signals: {
                                what: string;
                                alerts: number;
                                confirmed: number;
                                false_positive: number;
                                precision: number | null;
                                precision_low: number;
                                precision_high: number;
                                lift: number | null;
                            }[];
                            outcomes: {
                                as_of: string | null;
                                labels: number;
                                labels_without_session: number;
                                fraud: number;
                                caught: number;
                                missed: number;
                                recall: {
                                    rate: number | null;
                                    low: number;
                                    high: number;
                                };
                                honest: number;
                                harmed: number;
                                harmed_users: number;
                                harmed_share: {
                                    rate: number | null;
                                    low: number;
                                    high: number;
                                };
                                losses: {
                                    currency: string;
                                    lost: string;
                                    caught: string;
                                    missed: string;
                                }[];
                                flags: {
                                    flag: string;
                                    fraud: number;
                                    recall: {
                                        rate: number | null;
                                        low: number;
                                        high: number;
                                    };
                                    honest: number;
                                    honest_share: {
                                        rate: number | null;
                                        low: number;
                                        high: number;
                                    };
                                    losses: {
                                        currency: string;
                                        lost: string;
                                    }[];
                                }[];
                            };
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/prevalence-spikes": {
        get: {
            parameters: {
                query?: {
                    open?: string;
                    affected?: string;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            checked_at: string | null;
                            data: {
                                platform: string;
                                sdk_version: string;
                                signal: string;
                                started_at: string;
                                checked_at: string;
                                ended_at: string | null;
                                share: number;
                                earlier_share: number | null;
                                elsewhere_share: number | null;
                                z_score: number;
                                devices: number;
                                alerts: number;
                                device_ids: string[];
                                alert_ids: string[];
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/secrets/rewrap": {
        post: {
            responses: {
                200: {
                    content: {
                        "application/json": {
                            rewrapped: number;
                            already: number;
                            tenants: number;
                            remaining: number;
                            duration_ms: number;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/verdict-keys": {
        get: {
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["VerdictKeyList"];
                    };
                };
            };
        };
    };
    "/admin/v1/verdict-keys/rotate": {
        post: {
            requestBody: {
                content: {
                    "application/json": {
                        revoke?: boolean;
                    } | null;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["VerdictKeyList"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/ingest-answer": {
        put: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        ingest_answer: "full" | "interface";
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            ingest_answer: "full" | "interface";
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/client-address": {
        put: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        client_address: "connection" | "body";
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            client_address: "connection" | "body";
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/store-client-address": {
        put: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        store_client_address: boolean;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            store_client_address: boolean;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/recovery": {
        get: {
            responses: {
                200: {
                    content: {
                        "application/json": {
                            digest: string;
                            tenants: {
                                tenant_id: string;
                                directory: {
                                    epoch: number;
                                    status: "active" | "suspended";
                                    environment: "live" | "sandbox";
                                    policy_version: number;
                                    hmac_last4: string | null;
                                };
                                postgres: {
                                    epoch: number;
                                    status: "active" | "suspended";
                                    environment: "live" | "sandbox";
                                    policy_version: number;
                                    hmac_last4: string | null;
                                } | null;
                            }[];
                            api_keys: {
                                tenant_id: string;
                                sha256: string;
                                last4: string;
                            }[];
                            webhooks: {
                                tenant_id: string;
                                secret_id: number;
                            }[];
                            erasures: {
                                tenant_id: string;
                                subject: "device" | "user";
                                sha256: string;
                                started_at: string;
                            }[];
                        };
                    };
                };
            };
        };
        post: {
            requestBody: {
                content: {
                    "application/json": {
                        digest: string;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenants: number;
                            api_keys: number;
                            webhooks: number;
                            erasures: number;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/retention": {
        put: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        events?: number | ("default" | "forever");
                        alerts?: number | ("default" | "forever");
                        deliveries?: number | ("default" | "forever");
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["Tenant"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/erasures": {
        get: {
            parameters: {
                query?: {
                    limit?: number;
                    cursor?: string;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: components["schemas"]["Erasure"][];
                            limit: number;
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        device_id?: string;
                        user_id?: string;
                        wait?: boolean;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["ErasureReceipt"];
                    };
                };
                202: {
                    content: {
                        "application/json": components["schemas"]["Erasure"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/erasures/{erasure_id}": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                    erasure_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["Erasure"];
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/lists": {
        get: {
            parameters: {
                query?: {
                    list?: "allow" | "deny";
                    kind?: "device" | "user" | "network" | "asn" | "country";
                    id?: string;
                    reason?: string;
                    state?: "active" | "expired";
                    limit?: number;
                    cursor?: string;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: {
                                entry_id: string;
                                list: "allow" | "deny";
                                kind: "device" | "user" | "network" | "asn" | "country";
                                id: string;
                                reason: string;
                                expires_at: string | null;
                                expired: boolean;
                                created_at: string;
                                created_by: string;
                            }[];
                            total: number;
                            limit: number;
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        list: "allow" | "deny";
                        kind: "device" | "user" | "network" | "asn" | "country";
                        id: string;
                        reason: string;
                        expires_at?: string | null;
                    };
                };
            };
            responses: {
                201: {
                    content: {
                        "application/json": {
                            entry_id: string;
                            list: "allow" | "deny";
                            kind: "device" | "user" | "network" | "asn" | "country";
                            id: string;
                            reason: string;
                            expires_at: string | null;
                            expired: boolean;
                            created_at: string;
                            created_by: string;
                            warnings?: string[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/lists/{entry_id}": {
        delete: {
            parameters: {
                path: {
                    tenant_id: string;
                    entry_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            entry_id: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/labels": {
        get: {
            parameters: {
                query?: {
                    event_id?: string;
                    session_id?: string;
                    device_id?: string;
                    user_id?: string;
                    label?: string;
                    external_id?: string;
                    from?: string;
                    to?: string;
                    limit?: number;
                    cursor?: string;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: {
                                label_id: string;
                                subject: {
                                    event_id?: string;
                                    session_id?: string;
                                    device_id?: string;
                                    user_id?: string;
                                };
                                label: string;
                                outcome: ("fraud" | "legitimate") | null;
                                is_latest: boolean;
                                occurred_at: string;
                                covered_days: number | null;
                                amount: string | null;
                                currency: string | null;
                                external_id: string | null;
                                note: string | null;
                                created_at: string;
                                actor: string;
                            }[];
                            limit: number;
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NewLabelInput"]
                        | components["schemas"]["NewLabelInput"][];
                };
            };
            responses: {
                201: {
                    content: {
                        "application/json": {
                            data: {
                                label_id: string;
                                outcome: ("fraud" | "legitimate") | null;
                                occurred_at: string;
                                covered_days: number | null;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/labels/codes": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: components["schemas"]["LabelCode"][];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/labels/codes/{code}": {
        put: {
            parameters: {
                path: {
                    tenant_id: string;
                    code: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        means: "fraud" | "legitimate";
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["LabelCode"];
                    };
                };
            };
        };
        delete: {
            parameters: {
                path: {
                    tenant_id: string;
                    code: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            code: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/analysts": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            data: {
                                name: string;
                                user: string;
                                created_at: string;
                                created_by: string;
                            }[];
                        };
                    };
                };
            };
        };
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        name?: string;
                    };
                };
            };
            responses: {
                201: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            name: string;
                            url: string;
                            user: string;
                            password: string;
                            database: string;
                            warning?: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/analysts/{name}/password": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                    name: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            name: string;
                            url: string;
                            user: string;
                            password: string;
                            database: string;
                            warning?: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/analysts/{name}": {
        delete: {
            parameters: {
                path: {
                    tenant_id: string;
                    name: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            name: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/sql": {
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        sql: string;
                        parameters?: {
                            [key: string]: string;
                        };
                        format?: "rows" | "csv" | "excel";
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            columns: {
                                name: string;
                                type: string;
                            }[];
                            rows: unknown[][];
                            hints: string[];
                            truncated: boolean;
                            rows_read: number | null;
                            bytes_read: number | null;
                            duration_ms: number;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/sql/views": {
        get: {
            responses: {
                200: {
                    content: {
                        "application/json": {
                            database: string;
                            needs_server: boolean;
                            data: {
                                name: string;
                                comment: string;
                                columns: {
                                    name: string;
                                    type: string;
                                    comment: string;
                                }[];
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/sql/cookbook": {
        get: {
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: {
                                name: string;
                                question: string;
                                answer: string;
                                advice: string;
                                parameters: {
                                    [key: string]: string;
                                };
                                sql: string;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/fleet": {
        get: {
            parameters: {
                query?: {
                    from?: string;
                    to?: string;
                };
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            from: string;
                            to: string;
                            step_seconds: number;
                            times: string[];
                            totals: {
                                events: number;
                                devices: number;
                                sessions: number;
                                new_devices: number;
                            };
                            over_time: {
                                events: number[];
                                devices: number[];
                                sessions: number[];
                                new_devices: number[];
                            };
                            platforms: {
                                platform: string;
                                devices: number[];
                                events: number[];
                            }[];
                            versions: {
                                platform: string;
                                sdk_version: string;
                                events: number;
                                devices: number;
                                sessions: number;
                                first_seen_at: string;
                                last_seen_at: string;
                                devices_over_time: number[] | null;
                            }[];
                            signals: {
                                signal: string;
                                devices: number;
                                share: number;
                                by_version: (number | null)[];
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/keys": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            data: {
                                name: string;
                                scopes: ("read"
                                    | "alerts:write"
                                    | "lists:write"
                                    | "labels:write")[];
                                prefix: string;
                                last4: string;
                                created_at: string;
                                created_by: string;
                                last_used_at: string | null;
                            }[];
                        };
                    };
                };
            };
        };
        post: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        name?: string;
                        scopes: ("read" | "alerts:write" | "lists:write" | "labels:write")[];
                    };
                };
            };
            responses: {
                201: {
                    content: {
                        "application/json": {
                            name: string;
                            scopes: ("read" | "alerts:write" | "lists:write" | "labels:write")[];
                            prefix: string;
                            last4: string;
                            created_at: string;
                            created_by: string;
                            last_used_at: string | null;
                            tenant_id: string;
                            api_key: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/keys/{name}": {
        delete: {
            parameters: {
                path: {
                    tenant_id: string;
                    name: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string;
                            name: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/session": {
        get: {
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["SignedIn"];
                    };
                };
            };
        };
        post: {
            requestBody: {
                content: {
                    "application/json": {
                        email: string;
                        password: string;
                        code?: string;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["SignedIn"];
                    };
                };
            };
        };
        delete: {
            responses: {
                204: {
                };
            };
        };
    };
    "/admin/v1/session/step-up": {
        post: {
            requestBody: {
                content: {
                    "application/json": {
                        password?: string;
                        code?: string;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["SignedIn"];
                    };
                };
            };
        };
    };
    "/admin/v1/sessions": {
        get: {
            parameters: {
                query?: {
                    operator_id?: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: {
                                session_id: string;
                                created_at: string;
                                expires_at: string;
                                idle_expires_at: string;
                                signed_in_by: "password" | "oidc" | "link";
                                step_up_until: string | null;
                                operator_id: string;
                                last_used_at: string;
                                address: string;
                                user_agent: string;
                                current: boolean;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/sessions/{session_id}": {
        delete: {
            parameters: {
                path: {
                    session_id: string;
                };
            };
            responses: {
                204: {
                };
            };
        };
    };
    "/admin/v1/session/password": {
        put: {
            requestBody: {
                content: {
                    "application/json": {
                        current: string;
                        password: string;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["SignedIn"];
                    };
                };
            };
        };
    };
    "/admin/v1/session/totp": {
        post: {
            responses: {
                200: {
                    content: {
                        "application/json": {
                            secret: string;
                            otpauth_url: string;
                        };
                    };
                };
            };
        };
        delete: {
            responses: {
                204: {
                };
            };
        };
    };
    "/admin/v1/session/totp/confirm": {
        post: {
            requestBody: {
                content: {
                    "application/json": {
                        code: string;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            recovery_codes: string[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/operators/invitations": {
        get: {
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: {
                                invitation_id: string;
                                email: string;
                                name: string;
                                role: "viewer" | "analyst" | "engineer" | "admin";
                                tenants: "all" | string[];
                                state: "open" | "accepted" | "revoked" | "expired";
                                created_at: string;
                                created_by: string;
                                expires_at: string;
                            }[];
                        };
                    };
                };
            };
        };
        post: {
            requestBody: {
                content: {
                    "application/json": {
                        email: string;
                        role: "viewer" | "analyst" | "engineer" | "admin";
                        tenants?: "all" | string[];
                        name?: string;
                        valid_hours?: number;
                    };
                };
            };
            responses: {
                201: {
                    content: {
                        "application/json": {
                            invitation_id: string;
                            url: string;
                            expires_at: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/operators/invitations/withdraw": {
        post: {
            requestBody: {
                content: {
                    "application/json": {
                        invitation_id: string;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            invitation_id: string;
                            email: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/invitations/{token}": {
        get: {
            parameters: {
                path: {
                    token: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            email: string;
                            role: "viewer" | "analyst" | "engineer" | "admin";
                            reset: boolean;
                            expires_at: string;
                        };
                    };
                };
            };
        };
        post: {
            parameters: {
                path: {
                    token: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        name: string;
                        password: string;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["SignedIn"];
                    };
                };
            };
        };
    };
    "/admin/v1/session/ways": {
        get: {
            responses: {
                200: {
                    content: {
                        "application/json": {
                            passwords: boolean;
                            oidc: {
                                issuer: string;
                            } | null;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/session/oidc": {
        post: {
            requestBody: {
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            url: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/session/oidc/return": {
        post: {
            requestBody: {
                content: {
                    "application/json": {
                        query: string;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["SignedIn"];
                    };
                };
            };
        };
    };
    "/admin/v1/session/step-up/oidc": {
        post: {
            requestBody: {
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            url: string;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/session/step-up/oidc/return": {
        post: {
            requestBody: {
                content: {
                    "application/json": {
                        query: string;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": components["schemas"]["SignedIn"];
                    };
                };
            };
        };
    };
    "/admin/v1/second-factor": {
        get: {
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string | null;
                            required: boolean;
                            since: string | null;
                            required_of_all: boolean;
                        };
                    };
                };
            };
        };
        put: {
            requestBody: {
                content: {
                    "application/json": {
                        required: boolean;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string | null;
                            required: boolean;
                            since: string | null;
                            required_of_all: boolean;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/tenants/{tenant_id}/second-factor": {
        get: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string | null;
                            required: boolean;
                            since: string | null;
                            required_of_all: boolean;
                        };
                    };
                };
            };
        };
        put: {
            parameters: {
                path: {
                    tenant_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        required: boolean;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            tenant_id: string | null;
                            required: boolean;
                            since: string | null;
                            required_of_all: boolean;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/operators": {
        get: {
            responses: {
                200: {
                    content: {
                        "application/json": {
                            data: {
                                operator_id: string;
                                email: string;
                                name: string;
                                role: "viewer" | "analyst" | "engineer" | "admin";
                                tenants: "all" | string[];
                                totp: boolean;
                                password: boolean;
                                oidc: boolean;
                                disabled: boolean;
                                created_at: string;
                                created_by: string;
                                last_signed_in_at: string | null;
                            }[];
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/operators/{operator_id}": {
        patch: {
            parameters: {
                path: {
                    operator_id: string;
                };
            };
            requestBody: {
                content: {
                    "application/json": {
                        role?: "viewer" | "analyst" | "engineer" | "admin";
                        tenants?: "all" | string[];
                        disabled?: boolean;
                        name?: string;
                    };
                };
            };
            responses: {
                200: {
                    content: {
                        "application/json": {
                            operator_id: string;
                            email: string;
                            name: string;
                            role: "viewer" | "analyst" | "engineer" | "admin";
                            tenants: "all" | string[];
                            totp: boolean;
                            password: boolean;
                            oidc: boolean;
                            disabled: boolean;
                            created_at: string;
                            created_by: string;
                            last_signed_in_at: string | null;
                        };
                    };
                };
            };
        };
    };
    "/admin/v1/operators/{operator_id}/reset": {
        post: {
            parameters: {
                path: {
                    operator_id: string;
                };
            };
            responses: {
                201: {
                    content: {
                        "application/json": {
                            invitation_id: string;
                            url: string;
                            expires_at: string;
                        };
                    };
                };
            };
        };
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Action: "ALLOW" | "REVIEW" | "BLOCK";
        AlertPhone: {
            phone_id: string;
            confidence: number;
        };
        BulkJob: {
            job_id: string;
            tenant_id: string;
            sets: "disposition" | "assignee";
            disposition: ("OPEN" | "REVIEWED" | "FALSE_POSITIVE" | "CONFIRMED") | null;
            assignee: string | null;
            note: string | null;
            actor: string;
            state: "running" | "done" | "cancelled";
            total: number;
            done: number;
            changed: number;
            kept: number;
            undo_of: string | null;
            undone_by: string | null;
            created_at: string;
            ended_at: string | null;
        };
        Case: {
            case_id: string;
            tenant_id: string;
            subject: {
                kind: "phone" | "device" | "user";
                id: string;
            };
            state: "OPEN" | "CLOSED";
            snoozed_until: string | null;
            alerts: number;
            open_alerts: number;
            risk_score: number;
            severity: "LOW" | "MEDIUM" | "HIGH" | "CRITICAL";
            action: "REVIEW" | "BLOCK";
            flags: {
                code: string;
                alerts: number;
            }[];
            first_alert_at: string;
            latest_alert_at: string;
            due_at: string | null;
            breached: boolean;
            assignee: string | null;
            judged_by: string | null;
            judged_at: string | null;
            leased_by: string | null;
            leased_until: string | null;
            merged_into: string | null;
            version: number;
        };
        CaseDetail: {
            case: components["schemas"]["CaseRow"];
            devices: string[];
            users: string[];
            notes: {
                note_id: number;
                author: string;
                note: string;
                at: string;
            }[];
            history: {
                at: string;
                actor: string;
                kind: "reopened"
                    | "judged"
                    | "snoozed"
                    | "woken"
                    | "assigned"
                    | "merged"
                    | "split"
                    | "regrouped";
                details: {
                    [key: string]: unknown;
                };
            }[];
        };
        CaseRow: {
            case_id: string;
            tenant_id: string;
            subject: {
                kind: "phone" | "device" | "user";
                id: string;
            };
            state: "OPEN" | "CLOSED";
            snoozed_until: string | null;
            alerts: number;
            open_alerts: number;
            risk_score: number;
            severity: "LOW" | "MEDIUM" | "HIGH" | "CRITICAL";
            action: "REVIEW" | "BLOCK";
            flags: {
                code: string;
                alerts: number;
            }[];
            first_alert_at: string;
            latest_alert_at: string;
            due_at: string | null;
            breached: boolean;
            assignee: string | null;
            judged_by: string | null;
            judged_at: string | null;
            leased_by: string | null;
            leased_until: string | null;
            merged_into: string | null;
            version: number;
            money: {
                currency: string;
                amount: string;
            }[];
            here: string[];
        };
        CaseRules: {
            group_by: "phone" | "device" | "user";
            reopen_days: number;
            block_due_hours: number;
            review_due_hours: number;
        };
        Connection: {
            country: string | null;
            asn: number | null;
            organization: string | null;
            network: string;
            kinds: string[];
        };
        Delivery: {
            delivery_id: string;
            tenant_id: string;
            alert_id: string | null;
            event: string;
            state: "pending" | "sending" | "delivered" | "failed" | "skipped";
            reason: string | null;
            created_at: string;
            due_at: string | null;
            ended_at: string | null;
            attempts: {
                attempt: number;
                at: string;
                duration_ms: number;
                status: number | null;
                error_kind: string | null;
                error: string | null;
                address: string | null;
                answer: string | null;
            }[];
        };
        DeviceInstall: {
            provider: "key_attestation" | "app_attest" | "play_integrity" | "none";
            verdict: "verified" | "rejected" | "none";
            level: "strongbox" | "hardware" | "software" | "none";
            registered_at: string;
            expires_at: string;
        };
        DevicePhone: {
            phone_id: string;
            confidence: number;
            installs: number;
        };
        DeviceSession: {
            session_id: string;
            rasp_action: "ALLOW" | "REVIEW" | "BLOCK";
            started_at: string;
            last_seen_at: string;
            rasp_score: number;
            flags: components["schemas"]["Flag"][];
            risk_score: number;
            action: components["schemas"]["Action"];
            risk_flags: components["schemas"]["Flag"][];
            platform?: string;
            sdk_version?: string;
            app_version?: string;
            device_model?: string;
            connection: components["schemas"]["Connection"] | null;
            users: string[];
            users_total: number;
        };
        Disposition: "OPEN" | "REVIEWED" | "FALSE_POSITIVE" | "CONFIRMED";
        Erasure: {
            erasure_id: string;
            tenant_id: string;
            subject: {
                kind: "device" | "user";
                sha256: string;
            };
            state: "waiting" | "running" | "done" | "failed";
            requested_by: string;
            created_at: string;
            started_at: string | null;
            ended_at: string | null;
            progress: {
                store: "postgres" | "streams" | "clickhouse";
                state: "waiting" | "erasing" | "erased";
                rows: number | null;
            }[];
            problem: string | null;
            receipt: components["schemas"]["ErasureReceipt"] | null;
        };
        ErasureReceipt: {
            tenant_id: string;
            subject: {
                kind: "device" | "user";
                sha256: string;
            };
            started_at: string;
            finished_at: string;
            counts: {
                [key: string]: {
                    before: number;
                    after: number;
                };
            };
            kept_mentions: {
                events: number | null;
                others: {
                    place: string;
                    rows: number | null;
                }[];
            };
            notes: string[];
        };
        Event: {
            event_id: string;
            tenant_id: string;
            device_id: string;
            session_id: string;
            user_id?: string;
            account_id?: string;
            sdk_meta: {
                sdk_version: string;
                platform: string;
                batch_type: string;
            };
            app_version?: string;
            os_version?: string;
            device_brand?: string;
            device_model?: string;
            connection: components["schemas"]["Connection"] | null;
            phone?: components["schemas"]["DevicePhone"] | null;
            received_at: string;
            occurred_at?: string;
            rasp_score: number;
            rasp_action: components["schemas"]["Action"];
            risk_score: number;
            action: components["schemas"]["Action"];
            flags: components["schemas"]["Flag"][];
            reasons: components["schemas"]["Reason"][];
            policy_version: number;
        };
        EventCounts: {
            by: "action"
                | "flag"
                | "signal"
                | "signal_value"
                | "app_version"
                | "sdk_version"
                | "platform"
                | "country"
                | "asn"
                | "network_kind"
                | "score";
            all: {
                events: number;
                devices: number;
            };
            none: {
                events: number;
                devices: number;
            };
            values: {
                value: string;
                label: string;
                events: number;
                devices: number;
            }[];
            values_total: number;
            own_filter_left_out: boolean;
        };
        EventExplanation: {
            event: {
                event_id: string;
                tenant_id: string;
                device_id: string;
                session_id: string;
                user_id: string | null;
                account_id: string | null;
                received_at: string;
                sdk_version: string;
                platform: string;
                epoch: number;
                connection: components["schemas"]["Connection"] | null;
            };
            policy: {
                version: number;
                policy_hash: string;
                name: string;
                created_at: string | null;
                created_by: string | null;
                document_intact: boolean;
            };
            answered: {
                rasp_score: number;
                rasp_action: "ALLOW" | "REVIEW" | "BLOCK";
                flags: string[];
                reasons: {
                    code: string;
                    weight: number;
                    evidence: {
                        [key: string]: unknown;
                    };
                }[] | null;
            };
            decided: {
                risk_score: number;
                action: "ALLOW" | "REVIEW" | "BLOCK";
                flags: string[];
                reasons: {
                    code: string;
                    weight: number;
                    evidence: {
                        [key: string]: unknown;
                    };
                }[];
            };
            recomputed: {
                rasp_score: number;
                rasp_action: "ALLOW" | "REVIEW" | "BLOCK";
                flags: string[];
                reasons: {
                    code: string;
                    weight: number;
                    evidence: {
                        [key: string]: unknown;
                    };
                }[] | null;
            };
            matches: boolean;
            evidence_differs: boolean;
            differences: {
                field: string;
                answered: unknown;
                recomputed: unknown;
            }[];
            body_intact: boolean | null;
            forced: {
                device_id: string;
                rasp_score: number;
                rasp_action: "ALLOW" | "REVIEW" | "BLOCK";
            } | null;
            steps: {
                signals: {
                    signal: string;
                    seen_by: "client" | "server";
                    value: unknown;
                    outcome: "scored"
                        | "not_measured"
                        | "clean"
                        | "weightless"
                        | "unknown"
                        | "suppressed";
                    points: number;
                    suppressed_because?: string;
                }[];
                categories: {
                    category: "root"
                        | "emulator"
                        | "debugger"
                        | "tamper"
                        | "ecosystem"
                        | "network"
                        | "attestation"
                        | "connection";
                    sum: number;
                    groups: {
                        signals: string[];
                        cap: number;
                        sum: number;
                    }[];
                    cap: number;
                    strong_evidence: string[] | null;
                    capped: number;
                    halved_by: string[];
                    halved: number;
                    soft_limit: number | null;
                    points: number;
                }[];
                sum: number;
                missing: {
                    signals: string[];
                    points: number;
                } | null;
                total: number;
                floor: {
                    signal: string;
                    with?: string[];
                    score: number;
                } | null;
                score: number;
                thresholds: {
                    review: number;
                    block: number;
                };
                action: "ALLOW" | "REVIEW" | "BLOCK";
                reasons: {
                    code: string;
                    weight: number;
                    evidence: {
                        [key: string]: unknown;
                    };
                }[];
            };
            correlation: {
                risk_score: number;
                action: "ALLOW" | "REVIEW" | "BLOCK";
                reasons: {
                    code: string;
                    weight: number;
                    evidence: {
                        [key: string]: unknown;
                    };
                }[];
                retry: boolean;
                matches_alert: boolean | null;
            } | null;
            alerts: {
                alert_id: string;
                event_id: string;
                raised_by_this_event: boolean;
                action: "ALLOW" | "REVIEW" | "BLOCK";
                severity: string;
                risk_score: number;
                rasp_score: number;
                policy_version: number;
                disposition: string;
                created_at: string;
                reasons: {
                    code: string;
                    weight: number;
                    evidence: {
                        [key: string]: unknown;
                    };
                }[];
                correlation_reasons: {
                    code: string;
                    weight: number;
                    evidence: {
                        [key: string]: unknown;
                    };
                }[];
            }[];
        };
        EventPage: {
            data: components["schemas"]["Event"][];
            limit: number;
            next_cursor: string | null;
        };
        Evidence: {
            signals?: string[];
            caps?: {
                category: string;
                group?: string[];
                cap: number;
                sum: number;
            }[];
            strong_evidence?: string[];
            halved_by?: string[];
            soft_limit?: number;
            floor?: {
                signal: string;
                score: number;
            };
            metric?: string;
            count?: number;
            threshold?: number;
            window?: string;
            capped?: boolean;
        } & {
            [key: string]: unknown;
        };
        Flag: string;
        LabelCode: {
            code: string;
            means: ("fraud" | "legitimate") | null;
            is_declared: boolean;
        };
        Ledger: {
            from: string;
            to: string;
            as_of: string | null;
            agrees: boolean;
            data: components["schemas"]["LedgerHour"][];
        };
        LedgerDifference: {
            stage: "accepted" | "rows" | "decisions" | "alerts" | "deliveries";
            kind: "missing" | "unexplained";
            count: number;
            ids: string[];
        };
        LedgerHour: {
            hour: string;
            accepted: number;
            stored: number;
            repeats: number;
            refused: number;
            erased: number;
            rows: number;
            decided: number;
            alerts_due: number;
            alerts: number;
            deliveries: number;
            attempted: number;
            delivered: number;
            in_flight: number;
            expired: boolean;
            differences: components["schemas"]["LedgerDifference"][];
        };
        NewLabelInput: {
            subject: {
                event_id?: string;
                session_id?: string;
                device_id?: string;
                user_id?: string;
            };
            label: string;
            occurred_at?: string;
            covered_days?: number;
            amount?: string;
            currency?: string;
            external_id?: string;
            note?: string;
        };
        PhoneCorrection: {
            correction_id: string;
            device_id: string;
            from_phone_id: string;
            phone_id: string;
            kind: "join" | "split";
            reason: string;
            by: string;
            at: string;
            undone_by: string | null;
            undone_at: string | null;
            in_force: boolean;
        };
        PhoneEvidence: {
            field: string;
            level: number;
            weight: number;
            holders: number | null;
        };
        PhoneInstall: {
            device_id: string;
            link: "first" | "linked" | "possible" | "corrected";
            confidence: number;
            evidence: components["schemas"]["PhoneEvidence"][];
            decided_phone_id: string;
            possible_phone_id: string | null;
            possible_confidence: number | null;
            identifiers_shared: boolean;
            first_seen_at: string;
            last_seen_at: string;
            risk_score: number;
        };
        PhoneUser: {
            user_id: string;
            first_seen_at: string;
            last_seen_at: string;
            installs: number;
        };
        PolicyDraft: {
            draft_id: string;
            tenant_id: string;
            name: string | null;
            comment: string;
            base_version: number;
            in_force_version: number;
            revision: number;
            created_by: string;
            created_at: string;
            updated_by: string;
            updated_at: string;
            text: string;
            backtest: {
                at: string;
                since: string | null;
                events: number;
                new: number;
                gone: number;
                stricter: number;
                milder: number;
                confirmed_lost: number;
            } | null;
        };
        Problem: {
            type: string;
            title: string;
            status: number;
            detail: string;
            code: "invalid_body"
                | "invalid_policy"
                | "invalid_query"
                | "invalid_path"
                | "idempotency_key_refused"
                | "malformed_request"
                | "signature_missing"
                | "signature_invalid"
                | "unauthorized"
                | "totp_required"
                | "forbidden"
                | "scope_missing"
                | "totp_setup_required"
                | "step_up_required"
                | "step_up_refused"
                | "origin_refused"
                | "insecure_origin"
                | "not_found"
                | "device_not_found"
                | "user_not_found"
                | "phone_not_found"
                | "phone_correction_not_found"
                | "alert_not_found"
                | "tenant_not_found"
                | "delivery_not_found"
                | "policy_not_found"
                | "analyst_not_found"
                | "event_not_found"
                | "app_not_found"
                | "label_code_not_found"
                | "key_not_found"
                | "list_entry_not_found"
                | "case_not_found"
                | "saved_view_not_found"
                | "erasure_not_found"
                | "bulk_job_not_found"
                | "draft_not_found"
                | "proposal_not_found"
                | "operator_not_found"
                | "session_not_found"
                | "invitation_not_found"
                | "method_not_allowed"
                | "request_timeout"
                | "conflict"
                | "alert_changed"
                | "case_changed"
                | "phone_changed"
                | "tenant_exists"
                | "recovery_pending"
                | "recovery_changed"
                | "older_processes"
                | "analyst_exists"
                | "key_exists"
                | "operator_exists"
                | "last_admin"
                | "analysts_not_possible"
                | "analysts_need_a_server"
                | "policy_conflict"
                | "draft_changed"
                | "approval_required"
                | "proposal_void"
                | "webhook_not_on"
                | "webhook_has_no_url"
                | "idempotency_key_in_flight"
                | "body_too_large"
                | "uri_too_long"
                | "unsupported_media_type"
                | "expectation_failed"
                | "idempotency_key_reused"
                | "webhook_url_refused"
                | "query_failed"
                | "event_not_explainable"
                | "rate_limited"
                | "headers_too_large"
                | "internal_error"
                | "unavailable";
            request_id: string;
            errors?: {
                path: string;
                message: string;
            }[];
            present?: {
                disposition: components["schemas"]["Disposition"];
                assignee: string | null;
            };
            present_case?: {
                version: number;
                state: string;
                alerts: number;
                open_alerts: number;
                judged_by: string | null;
            };
            signature_form?: string;
            received?: {
                bytes: number;
                sha256: string;
            };
            accepted?: number;
            invalid?: number;
            unavailable?: number;
            events?: ({
                status: "accepted" | "invalid" | "unavailable";
            } & {
                [key: string]: unknown;
            })[];
        };
        Proposal: {
            proposal_id: string;
            tenant_id: string;
            kind: "policy"
                | "rotation"
                | "install_root"
                | "erasure"
                | "bulk"
                | "bulk_undo"
                | "four_eyes"
                | "api_key"
                | "retention"
                | "wide_list_entry"
                | "suspension"
                | "shared_secret";
            summary: string;
            reason: string;
            author: string;
            state: "open" | "approved" | "rejected" | "withdrawn" | "void" | "failed" | "expired";
            may_approve: boolean;
            created_at: string;
            expires_at: string;
            ended_at: string | null;
            ended_by: string | null;
            note: string | null;
            subject: {
                kind: "device" | "user";
                sha256: string;
                id: string | null;
            } | null;
            policy: {
                base_version: number;
                document: unknown;
                changes: {
                    path: string;
                    before: string | null;
                    after: string | null;
                }[];
                backtest: {
                    at: string;
                    since: string | null;
                    events: number;
                    new: number;
                    gone: number;
                    stricter: number;
                    milder: number;
                    confirmed_lost: number;
                } | null;
            } | null;
            alerts: {
                proposed: number;
                now: number;
                within_margin: boolean;
            } | null;
        };
        Reason: {
            code: components["schemas"]["Flag"];
            weight: number;
            evidence: components["schemas"]["Evidence"];
        };
        SavedView: {
            view_id: string;
            kind: "cases" | "alerts" | "events" | "sql";
            name: string;
            query: {
                [key: string]: string;
            };
            shared: boolean;
            owner: string;
            own: boolean;
            updated_at: string;
        };
        Signal: {
            signal: string;
            name: string;
            seen_by: "client" | "server";
            type: "boolean" | "number" | "string" | "strings";
            values: {
                [key: string]: string[];
            } | null;
            platforms: ("android" | "ios")[];
            grade: "critical" | "high" | "medium" | "low" | "informational";
            flag: components["schemas"]["Flag"];
            description: string;
            sources: string[];
            weight: components["schemas"]["SignalWeight"];
            suppressed: components["schemas"]["SignalSuppression"][];
        };
        SignalList: {
            policy: {
                name: string;
                version: number;
                policy_hash: string;
                thresholds: {
                    review: number;
                    block: number;
                };
            };
            categories: {
                category: "root"
                    | "emulator"
                    | "debugger"
                    | "tamper"
                    | "ecosystem"
                    | "network"
                    | "attestation"
                    | "connection";
                seen_by: "client" | "server";
                cap: number;
                soft: boolean;
                groups: {
                    cap: number;
                    signals: string[];
                }[];
                signals: components["schemas"]["Signal"][];
            }[];
            flags: {
                [key: string]: string;
            };
        };
        SignalSuppression: {
            sdk_versions?: string[];
            platforms?: string[];
            expires_at: string | null;
            reason: string;
        };
        SignalWeight: number | {
            when_false: number;
        } | {
            at_least: number;
            weight: number;
        } | {
            values: {
                [key: string]: number;
            };
            unless?: string[];
        };
        SignedIn: {
            operator: {
                operator_id: string;
                email: string;
                name: string;
                role: "viewer" | "analyst" | "engineer" | "admin";
                tenants: "all" | string[];
                totp: boolean;
                password: boolean;
                oidc: boolean;
            };
            session: {
                session_id: string;
                created_at: string;
                expires_at: string;
                idle_expires_at: string;
                signed_in_by: "password" | "oidc" | "link";
                step_up_until: string | null;
            };
            step_up_by: ("code" | "password" | "oidc")[];
            must_enrol: boolean;
        };
        Tenant: {
            tenant_id: string;
            name: string;
            environment: "live" | "sandbox";
            status: "active" | "suspended";
            epoch: number;
            created_at: string;
            webhook_url: string | null;
            webhook_state: "on" | "off" | "paused";
            webhook_off_reason: string | null;
            webhook_changed_at: string | null;
            webhook_events: ("risk.alert" | "alert.updated")[];
            webhook_health: {
                failing_since: string;
                failed_attempts: number;
                last_failure: string | null;
                held_until: string | null;
                failed_probes: number;
            } | null;
            policy_version: number;
            policy_hash: string;
            ingest_rate: {
                per_second: number;
                burst: number;
            } | null;
            ingest_bytes: {
                per_second: number;
                burst: number;
            } | null;
            ingest_share: number | null;
            telemetry_stream: number;
            ingest_answer: "full" | "interface";
            client_address: "connection" | "body";
            store_client_address: boolean;
            rest_rate: {
                per_second: number;
                burst: number;
            } | null;
            retention: {
                events: {
                    days: number | null;
                    default: boolean;
                };
                alerts: {
                    days: number | null;
                    default: boolean;
                };
                deliveries: {
                    days: number | null;
                    default: boolean;
                };
            };
            public_api_key: {
                prefix: string;
                last4: string;
                created_at: string;
                last_used_at: string | null;
            } | null;
            hmac_secret: {
                last4: string;
                created_at: string;
                state: string;
            } | null;
            shared_secret_off: boolean;
            install_roots: {
                epoch: number;
                state: "current" | "next" | "previous";
                created_at: string;
            }[];
            webhook_secret: {
                last4: string;
                created_at: string;
            } | null;
        };
        TimelineEntry: {
            kind: "event";
            id: string;
            at: string;
            device_id: string;
            session_id: string;
            user_id: string | null;
            action: "ALLOW" | "REVIEW" | "BLOCK";
            risk_score: number;
            rasp_score: number;
            flags: string[];
        } | {
            kind: "signal";
            id: string;
            at: string;
            device_id: string;
            session_id: string;
            event_id: string;
            signal: string;
            change: "appeared" | "went" | "returned";
        } | {
            kind: "alert";
            id: string;
            at: string;
            device_id: string;
            user_id: string | null;
            action: "ALLOW" | "REVIEW" | "BLOCK";
            severity: "LOW" | "MEDIUM" | "HIGH" | "CRITICAL";
            risk_score: number;
            flags: string[];
            disposition: "OPEN" | "REVIEWED" | "FALSE_POSITIVE" | "CONFIRMED";
        } | {
            kind: "delivery";
            id: string;
            at: string;
            alert_id: string;
            event: "risk.alert" | "alert.updated" | "webhook.test";
            state: "pending" | "sending" | "delivered" | "failed" | "skipped";
            reason: string | null;
        } | {
            kind: "assignment";
            id: string;
            at: string;
            alert_id: string;
            by: string;
            from: string | null;
            to: string | null;
        } | {
            kind: "note";
            id: string;
            at: string;
            alert_id: string;
            by: string;
            note: string;
        } | {
            kind: "case_note";
            id: string;
            at: string;
            case_id: string;
            by: string;
            note: string;
        } | {
            kind: "disposition";
            id: string;
            at: string;
            alert_id: string;
            by: string;
            from: "OPEN" | "REVIEWED" | "FALSE_POSITIVE" | "CONFIRMED";
            to: "OPEN" | "REVIEWED" | "FALSE_POSITIVE" | "CONFIRMED";
            note: string | null;
        } | {
            kind: "label";
            id: string;
            at: string;
            by: string;
            subject_kind: "device" | "user";
            subject_id: string;
            label: string;
            occurred_at: string;
            note: string | null;
        } | {
            kind: "list_entry";
            id: string;
            at: string;
            by: string;
            list: "allow" | "deny";
            listed_kind: "device" | "user" | "network" | "asn" | "country";
            listed_id: string;
            reason: string;
            expires_at: string | null;
        } | {
            kind: "correction";
            id: string;
            at: string;
            by: string;
            device_id: string;
            phone_id: string;
            reason: string;
            undone: boolean;
        };
        User: {
            user_id: string;
            first_seen_at: string;
            last_seen_at: string;
            peak_rasp_score: number;
            risk_score: number;
            devices: components["schemas"]["UserDevice"][];
            devices_total: number;
            devices_cursor: string | null;
        };
        UserDevice: {
            device_id: string;
            first_seen_at: string;
            last_seen_at: string;
            peak_rasp_score: number;
            risk_score: number;
            phone?: components["schemas"]["DevicePhone"] | null;
        };
        UserSession: {
            session_id: string;
            rasp_action: "ALLOW" | "REVIEW" | "BLOCK";
            started_at: string;
            last_seen_at: string;
            rasp_score: number;
            flags: components["schemas"]["Flag"][];
            risk_score: number;
            action: components["schemas"]["Action"];
            risk_flags: components["schemas"]["Flag"][];
            platform?: string;
            sdk_version?: string;
            app_version?: string;
            device_model?: string;
            connection: components["schemas"]["Connection"] | null;
            device_id: string;
        };
        VerdictKeyList: {
            data: {
                kid: string;
                state: "next" | "current" | "previous";
                created_at: string;
                current_since: string | null;
                replaced_at: string | null;
                kept_until: string | null;
            }[];
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
