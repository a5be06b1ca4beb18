package parent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/internal/revision"
)

// Record is what a set's parent says of the last sync that was carried through, for
// whoever can ask the cluster and no kubesync.
type Record struct {
	Repo     string
	URL      string
	Tier     string
	Revision revision.Revision // as far as it is recorded: ID, Ref and Subject
	Source   string            // CMD, YMLDIR, kubernetes/ or root
	Dir      string
	Writer   string    // the Lease of the kubesync that writes it
	Written  time.Time // the record; zero if it does not say
	Result   string    // for example "12 synced, 1 failed"; empty before the end of a first sync
}

// Records returns what all parents in a namespace say, by repo.
func Records(ctx context.Context, config *rest.Config, namespace string) ([]Record, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	list, err := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: manifest.ParentIDLabel})
	if err != nil {
		return nil, fmt.Errorf("list the ConfigMaps of apply sets in %s: %w", namespace, err)
	}
	var records []Record
	for _, live := range list.Items {
		repo, isParent := Repo(live.Name)
		if !isParent || !IsOurs(&live) {
			continue
		}
		data := live.Data
		written, _ := time.Parse(time.RFC3339, data[DataWritten]) // zero if a user edited it
		records = append(records, Record{
			Repo: repo, URL: data[DataURL], Tier: data[DataTier], Revision: Parent{&live}.Revision(),
			Source: data[DataSource], Dir: data[DataDirectory], Writer: data[DataWriter], Written: written, Result: data[DataResult],
		})
	}
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.Repo, b.Repo) })
	return records, nil
}
